// Formulas in Markdown, for markdown-it: $..$ and \(..\) in a line; $$..$$ and \[..\] on display, in
// a line or as a block. What comes out is what was written, in an element that maths.js draws.
//
// A price is no formula: after the first $ and before the last one stands no space, after the last
// one no digit, and between them no other $. A block has no blank line in it.

const DELIMITERS = [
  { open: "$$", close: "$$", display: true },
  { open: "\\[", close: "\\]", display: true },
  { open: "\\(", close: "\\)", display: false },
  { open: "$", close: "$", display: false },
];

export function maths(md) {
  const { escapeHtml } = md.utils;
  const draw = (tag) => (tokens, at) => {
    const { content, info } = tokens[at];
    return `<${tag} class="maths ${info}">${escapeHtml(content)}</${tag}>`;
  };
  md.inline.ruler.before("escape", "maths", inLine);
  md.block.ruler.before("fence", "maths_block", block, { alt: ["paragraph", "blockquote", "list"] });
  md.renderer.rules.maths = draw("span");
  md.renderer.rules.maths_block = draw("div");
}

function inLine(state, silent) {
  const { src, pos, posMax } = state;
  const kind = DELIMITERS.find(({ open }) => src.startsWith(open, pos));
  if (kind === undefined) return false;
  const start = pos + kind.open.length;
  const end = closing(src, start, posMax, kind);
  if (end < 0) return false;
  if (!silent) push(state.push("maths", "", 0), src.slice(start, end), kind);
  state.pos = end + kind.close.length;
  return true;
}

/** Where the formula that begins at `start` ends; -1 if it does not. */
function closing(src, start, limit, { open, close }) {
  const tight = open === "$";
  if (tight && /\s/.test(src[start] ?? " ")) return -1;
  for (let at = start; at + close.length <= limit; at++) {
    if (src.startsWith(close, at) && at > start) return tight && isLoose(src, at) ? -1 : at;
    if (src[at] === "\\") at += 1;
  }
  return -1;
}

function isLoose(src, at) {
  return /\s/.test(src[at - 1]) || /[\d$]/.test(src[at + 1] ?? "");
}

function block(state, startLine, endLine, silent) {
  if (state.sCount[startLine] - state.blkIndent >= 4) return false;
  const kind = DELIMITERS.find(({ open, display }) => display && lineOf(state, startLine).startsWith(open));
  if (kind === undefined) return false;
  const lines = [];
  for (let line = startLine; line < endLine; line++) {
    const text = lineOf(state, line);
    if (text === "" || state.sCount[line] < state.blkIndent) return false;
    lines.push(text);
    if (ends(lines, kind)) return silent || close(state, startLine, line + 1, lines, kind);
  }
  return false;
}

function lineOf(state, line) {
  return state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trimEnd();
}

/** Whether the last line closes the formula, which is more than its two marks. */
function ends(lines, { open, close }) {
  const last = lines.length === 1 ? lines[0].slice(open.length) : lines.at(-1);
  return last.endsWith(close) && (lines.length > 1 || last.length > close.length);
}

function close(state, startLine, nextLine, lines, kind) {
  const content = lines.join("\n").slice(kind.open.length, -kind.close.length);
  const token = state.push("maths_block", "", 0);
  token.block = true;
  token.map = [startLine, nextLine];
  push(token, content, kind);
  state.line = nextLine;
  return true;
}

function push(token, content, { open, close, display }) {
  token.content = `${open}${content}${close}`;
  token.info = display ? "display" : "";
}
