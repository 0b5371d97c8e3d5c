import assert from "node:assert/strict";
import { test } from "node:test";

import { BlockStream } from "../../gateway_app/static/gateway_app/js/blocks.js";
import { markdown } from "../../gateway_app/static/gateway_app/js/markdown.js";
import { counting, plain, random, whole } from "./parsing.js";

const STARTS = [
  "- ", "* ", "+ ", "1. ", "2. ", "3) ", "10. ", "-", "*", "1.", "-    ", "-     ", "1.   ", "- - ", "- 1. ",
  "- > ", "> ", "> - ", "# ", "```", "```js", "~~~", "$$", "\\[", "$$ x $$", "---", "***", "* * *", "- - -",
  "===", "|a|b|", "|-|-|", "a|b", "-|-", "text", "| x | y |", "- [ ] ", "- [x] ", "**b** ", "- a|b", "- $$",
  "- ```", "\tx", "- \t", "-\t",
];
const INDENTS = ["", "", "", " ", "  ", "   ", "    ", "     ", "      ", "\t"];
const WORDS = ["", "a", "b *c* d", "`code`", "word", "$x$", "a|b", "-", "x\ty"];

/** A text of lists and what stands in and between them, with few kinds of lines. */
function textOf(next) {
  const pick = (all) => all[Math.floor(next() * all.length)];
  const some = (all, least, most) =>
    Array.from({ length: least + Math.floor(next() * most) }, () => pick(all));
  const starts = some(STARTS, 2, 5);
  const indents = some(INDENTS, 1, 4);
  const blank = () => pick(["\n", "\n", "  \n"]);
  const line = () => (next() < 0.25 ? blank() : `${pick(indents)}${pick(starts)}${pick(WORDS)}\n`);
  return Array.from({ length: 4 + Math.floor(next() * 14) }, line).join("");
}

test("it shows lists and tables after every piece as parsing the whole text would", () => {
  let growing = 0;
  for (let seed = 1; seed <= 1000; seed++) {
    const next = random(seed * 7919);
    const text = textOf(next);
    const stream = new BlockStream(markdown);
    const step = next() < 0.3 ? 12 : 2;
    for (let end = 0; end < text.length; ) {
      end = Math.min(text.length, end + 1 + Math.floor(next() * step));
      const part = text.slice(0, end);
      assert.deepEqual(plain(stream.update(part)), whole(part), `seed ${seed}: ${JSON.stringify(part)}`);
      if (stream.blocks.some(({ html, pieces }) => pieces && html === undefined)) growing += 1;
    }
    assert.deepEqual(plain(stream.settle(text)), whole(text));
  }
  assert.ok(growing > 3000, `only ${growing} states of growing rows`);
});

const WORD = "with *some* `words` & more";
const LONG = {
  "tight list": (at) => `- item ${at} ${WORD}\n`,
  "loose list": (at) => `* item ${at} ${WORD}\n\n`,
  "numbered list": (at) => `${at + 7}. item ${at} ${WORD}\n`,
  "list of tasks": (at) => `- [${at % 2 ? "x" : " "}] task ${at} ${WORD}\n`,
  "list of lists": (at) => `+ item ${at}\n  1) sub\n     - leaf\n     - leaf\n  2) sub\n`,
  "list with code": (at) => `- step ${at}\n\n  \`\`\`sh\n  run ${at}\n\n  again\n  \`\`\`\n\n`,
  "list with quotes": (at) => `  - item ${at}\n    > said ${at}\nand more\n`,
  table: (at) => `${at ? "" : "| a | b |\n|:-|-:|\n"}| ${at} | ${WORD} |\n`,
};

for (const [name, row] of Object.entries(LONG)) {
  test(`it parses only the last piece of a long ${name}, and the others stay the same`, () => {
    const parsed = [];
    const stream = new BlockStream(counting(parsed));
    const text = Array.from({ length: 600 }, (_, at) => row(at)).join("");
    let before = [];
    for (let end = 0; end < text.length; end += 17) {
      const [{ pieces = [] }, ...others] = stream.update(text.slice(0, end + 17));
      assert.deepEqual(others, []);
      before.slice(0, -2).forEach((piece, at) => assert.ok(piece === pieces[at]));
      before = pieces;
    }
    assert.ok(Math.max(...parsed) < 400, `parsed ${Math.max(...parsed)} characters at once`);
    assert.deepEqual(plain(stream.blocks), whole(text));
    parsed.length = 0;
    // What comes after it, before its line is complete, takes the list once, not for each word.
    const after = `${text}\n**After** it, a paragraph`;
    for (let end = text.length; end < after.length; end += 3) stream.update(after.slice(0, end + 3));
    assert.ok(parsed.filter((length) => length > 400).length <= 8, `${parsed}`);
    assert.deepEqual(plain(stream.blocks), whole(after));
  });
}

test("it sees that a long list is loose after all, or that it seemed so only", () => {
  const items = "- item\n".repeat(200);
  for (const end of ["\n- one more", "\n- - -\n", "\n  still the last\n", "\n-x", "  # head\n\n  # head\n"]) {
    const text = `${items}${end}`;
    const stream = new BlockStream(markdown);
    for (let at = items.length; at <= text.length; at++) {
      const part = text.slice(0, at);
      assert.deepEqual(plain(stream.update(part)), whole(part), JSON.stringify(end));
    }
  }
});

test("it knows in an item the links that were defined in one before it", () => {
  const text = "- one\n\n  [p]: https://example.org/page\n\n- two\n- three\n- see [it][p]\n- five";
  const stream = new BlockStream(markdown);
  for (let end = 1; end <= text.length; end++) stream.update(text.slice(0, end));
  assert.match(stream.blocks[0].pieces[3], /href="https:\/\/example.org\/page"/);
});
