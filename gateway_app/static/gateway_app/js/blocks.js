// A growing Markdown text as a list of top-level blocks. A finished block keeps its identity (the
// same object), so that whoever draws the list touches only what still grows. What an update costs
// grows with what is new and with the last block, not with the text; an open fence and a long
// paragraph or quote cost only what is new.
//
// A block is {html}, or {code, language, closed} for a fence at the top level. A list and a table are
// {html, frame: [before, after], pieces}: `pieces` are its items or rows, and html is all of it joined.
// So is a long block of long_block.js, with `growing`: as long as it is, its pieces stand for it.

import { OpenFence } from "./fence.js";
import { LongBlock } from "./long_block.js";

const BODIES = {
  bullet_list_open: "bullet_list_open",
  ordered_list_open: "ordered_list_open",
  table_open: "tbody_open",
};
const MATHS_OPENER = /^\s*(?:\$\$|\\\[)/;

export class BlockStream {
  #md;
  #raw = "";
  #tail = "";
  #fence = null;
  #long = null;
  #settled = [];
  #references = {};
  blocks = [];

  constructor(md) {
    this.#md = md;
  }

  /** The blocks of `text`; only what follows the last settled boundary is parsed. */
  update(text) {
    if (text === this.#raw) return this.blocks;
    if (!text.startsWith(this.#raw)) this.#forget();
    const added = normalise(text.slice(this.#raw.length), this.#raw.endsWith("\r"));
    this.#raw = text;
    const open = this.#grow(added);
    return this.#keep([...this.#settled, ...open]);
  }

  /**
   * The blocks of a text that is complete, parsed as a whole: a link whose address was defined
   * after its use is found only now, and no fence is open any more.
   */
  settle(text) {
    this.#forget();
    this.#raw = text;
    const blocks = this.#parse(normalise(text, false), {});
    for (const block of blocks) if (block.code !== undefined) block.closed = true;
    return this.#keep(blocks);
  }

  #keep(blocks) {
    this.blocks = blocks.map((block, at) => (same(this.blocks[at], block) ? this.blocks[at] : block));
    return this.blocks;
  }

  #forget() {
    this.#raw = "";
    this.#tail = "";
    this.#fence = null;
    this.#long = null;
    this.#settled = [];
    this.#references = {};
  }

  /** The blocks that are not settled, after `added`. */
  #grow(added) {
    if (this.#fence === null) {
      this.#tail += added;
      const long = this.#long?.append(added) ?? null;
      return long === null ? this.#reparse() : [long];
    }
    const rest = this.#fence.append(added);
    if (rest === null) return [this.#fence.block];
    this.#settled.push(this.#fence.block);
    this.#fence = null;
    this.#tail = rest;
    return this.#reparse();
  }

  #reparse() {
    let tail = this.#parse(this.#tail, { ...this.#references });
    const boundary = lastBoundary(tail, this.#tail);
    if (boundary !== null) {
      this.#settled.push(...this.#parse(this.#tail.slice(0, boundary), this.#references));
      this.#tail = this.#tail.slice(boundary);
      tail = this.#parse(this.#tail, { ...this.#references });
    }
    const alone = tail.length === 1 ? tail[0] : {};
    const isText = alone.html !== undefined && alone.pieces === undefined;
    this.#fence = alone.code === undefined ? null : OpenFence.of(this.#tail, alone);
    this.#long = isText ? LongBlock.of(this.#tail, (text) => this.#tokens(text)) : null;
    return this.#long === null ? tail : [this.#long.block];
  }

  /** The tokens of each block of a source, and what renders some of them. */
  #tokens(source, references = { ...this.#references }) {
    const env = { references };
    const render = (some) => this.#md.renderer.render(some, this.#md.options, env);
    return { groups: groups(this.#md.parse(source, env)), render };
  }

  #parse(source, references) {
    const { groups: found, render } = this.#tokens(source, references);
    return found.map((tokens) => {
      const [first] = tokens;
      const [line, end] = first.map;
      if (first.type === "fence") {
        const language = first.info.trim().split(/\s+/)[0];
        return { line, end, code: first.content, language, closed: isClosed(first.content, end - line) };
      }
      return { line, end, ...(framed(tokens, render) ?? { html: render(tokens) }) };
    });
  }
}

/** A list or a table in its pieces; null for other tokens, and for a table without rows. */
function framed(tokens, render) {
  const body = tokens.findIndex(({ type }) => type === BODIES[tokens[0].type]);
  if (body < 0) return null;
  const { level } = tokens[body];
  const starts = [];
  let end = body + 1;
  for (; tokens[end].level > level; end += 1) {
    if (tokens[end].level === level + 1 && tokens[end].nesting === 1) starts.push(end);
  }
  const pieces = starts.map((at, number) => render(tokens.slice(at, starts[number + 1] ?? end)));
  const frame = [render(tokens.slice(0, body + 1)), render(tokens.slice(end))];
  return { html: `${frame[0]}${pieces.join("")}${frame[1]}`, frame, pieces };
}

/** A fence with `lines` lines, its own two among them, if it has both. */
function isClosed(content, lines) {
  let inside = content === "" || content.endsWith("\n") ? 0 : 1;
  for (let at = content.indexOf("\n"); at >= 0; at = content.indexOf("\n", at + 1)) inside += 1;
  return lines === inside + 2;
}

/** `afterReturn`: a carriage return stands before `text`, and was taken for a line's end. */
function normalise(text, afterReturn) {
  const fresh = afterReturn && text.startsWith("\n") ? text.slice(1) : text;
  return fresh.replace(/\r\n?/g, "\n").replaceAll("\0", "\uFFFD");
}

function same(one, other) {
  return (
    one !== undefined &&
    one.html === other.html &&
    one.growing === other.growing &&
    one.code === other.code &&
    one.language === other.language &&
    one.closed === other.closed
  );
}

/** The tokens of each top-level block. */
function groups(tokens) {
  const found = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0) found.push([]);
    found.at(-1).push(token);
    depth += token.nesting;
  }
  return found;
}

/**
 * Where the last block begins that no later text can join to the one before it: its first line is
 * complete, and either a blank line stands before it or its second line is complete too ("a|b" and
 * "-|-" make a table only together). Null if there is none.
 */
function lastBoundary(blocks, source) {
  const starts = [0];
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  const complete = starts.length - 1;
  const lineAt = (number) => source.slice(starts[number], starts[number + 1]);
  for (const { line, end } of blocks.slice(1).reverse()) {
    const blankBefore = lineAt(line - 1).trim() === "";
    if (line >= complete || (!blankBefore && line + 1 >= complete)) continue;
    // A formula is one only once its last line is whole.
    if (!blankBefore && MATHS_OPENER.test(lineAt(line)) && end > complete) continue;
    if (!mayBeMaths(lineAt, line)) return starts[line];
  }
  return null;
}

/** Whether a formula may have begun in the lines before `line`: it ends with a blank line. */
function mayBeMaths(lineAt, line) {
  for (let at = line - 1; at >= 0 && lineAt(at).trim() !== ""; at -= 1) {
    if (MATHS_OPENER.test(lineAt(at))) return true;
  }
  return false;
}
