// Markdown as HTML text. Raw HTML is escaped, nothing is emitted that a strict policy would refuse;
// what comes out still goes through sanitise.js before it meets the page.

import MarkdownIt from "../vendor/markdown-it.js";
import { maths } from "./maths_markdown.js";

const ALIGN = { "text-align:right": "ta-end", "text-align:center": "ta-center" };

export const markdown = configure(
  new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false }),
);

function configure(md) {
  md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
  md.renderer.rules.th_open = md.renderer.rules.td_open = openCell;
  md.renderer.rules.heading_open = (tokens, at) => `<${heading(tokens[at].tag)} class="h-${tokens[at].tag}">`;
  md.renderer.rules.heading_close = (tokens, at) => `</${heading(tokens[at].tag)}>\n`;
  md.renderer.rules.image = image;
  md.use(maths);
  return md;
}

/** Alignment by class: a style attribute in parsed HTML breaks the policy and is lost. */
function openCell(tokens, at, options, env, self) {
  const token = tokens[at];
  const align = ALIGN[token.attrGet("style")];
  token.attrs = align ? [["class", align]] : null;
  return self.renderToken(tokens, at, options);
}

/** An answer's headings start below the page's own two levels. */
function heading(tag) {
  return `h${Math.min(6, Number(tag.slice(1)) + 2)}`;
}

/**
 * An image is never fetched by itself: it would tell a stranger who reads what, and when. It is a
 * link that says where it leads; one that carries its own bytes is shown.
 */
function image(tokens, at, options, env, self) {
  const token = tokens[at];
  const { escapeHtml } = markdown.utils;
  const source = token.attrGet("src");
  const words = escapeHtml(self.renderInlineAsText(token.children ?? [], options, env));
  if (source.startsWith("data:")) return `<img src="${escapeHtml(source)}" alt="${words}">`;
  const text = [words, escapeHtml(hostOf(source))].filter(Boolean).join(", ");
  return `<a class="image-link" href="${escapeHtml(source)}">${text}</a>`;
}

function hostOf(address) {
  return /^https?:\/\/([^/?#]+)/i.exec(address)?.[1] ?? address;
}
