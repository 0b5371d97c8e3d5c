// Markdown as HTML text. Raw HTML is escaped, nothing is emitted that a strict policy would refuse;
// what comes out still goes through sanitise.js before it meets the page.

import MarkdownIt from "../vendor/markdown-it.js";

const ALIGN = { "text-align:right": "ta-end", "text-align:center": "ta-center" };

export const markdown = configure(
  new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false }),
);

function configure(md) {
  md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
  md.renderer.rules.th_open = md.renderer.rules.td_open = openCell;
  md.renderer.rules.heading_open = (tokens, at) => `<${heading(tokens[at].tag)} class="h-${tokens[at].tag}">`;
  md.renderer.rules.heading_close = (tokens, at) => `</${heading(tokens[at].tag)}>\n`;
  md.renderer.rules.image = imageLink;
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

/** An image is never fetched by itself: it would tell a stranger who reads what, and when. */
function imageLink(tokens, at, options, env, self) {
  const token = tokens[at];
  const { escapeHtml } = markdown.utils;
  const words = self.renderInlineAsText(token.children ?? [], options, env);
  const text = `Image: ${escapeHtml(words || token.attrGet("src"))}`;
  return `<a class="image-link" href="${escapeHtml(token.attrGet("src"))}">${text}</a>`;
}
