// What tests of growing Markdown share.

import { BlockStream } from "../../gateway_app/static/gateway_app/js/blocks.js";
import { markdown } from "../../gateway_app/static/gateway_app/js/markdown.js";

/** What is seen of blocks. While a list or a table grows, its pieces stand for its HTML. */
export function plain(blocks) {
  return blocks.map(({ html, frame, pieces, code, language }) => {
    const joined = frame && `${frame[0]}${pieces.join("")}${frame[1]}`;
    return { html: html ?? joined, code, language };
  });
}

export function whole(text) {
  return plain(new BlockStream(markdown).settle(text));
}

/** A small generator with a seed: the same texts in every run. */
export function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** A parser that notes how much it is given. */
export function counting(parsed) {
  const counted = Object.create(markdown);
  counted.parse = (source, env) => {
    parsed.push(source.length);
    return markdown.parse(source, env);
  };
  return counted;
}
