// A growing Markdown text as a list of top-level blocks. A finished block keeps its identity (the
// same object), so that whoever draws the list touches only what still grows. What an update costs
// grows with what is new and with the last block, not with the text; an open fence, a list's items, a
// table's rows, and a long paragraph or quote cost only what is new.
//
// A block is {html}, or {code, language, closed} for a fence at the top level. A list and a table are
// {html, frame: [before, after], pieces}: `pieces` are its items or rows, and html is all of it joined,
// or not there while it grows. So is a long block of long_block.js, with `growing`: as long as it is,
// its pieces stand for it.

import { OpenFence } from "./fence.js";
import { LongBlock } from "./long_block.js";
import { OpenRows } from "./open_rows.js";
import { rowsOf } from "./rows.js";

const MATHS_OPENER = /^\s*(?:\$\$|\\\[)/;
// What after a blank line may be, or become, more of the list or the code before it.
const MAY_GO_ON = /^(?:\s|$|[*+-](?:\s|$)|\d{1,9}(?:$|[.)](?:\s|$)))/;

export class BlockStream {
  #md;
  #raw = "";
  #tail = "";
  #fence = null;
  #open = null;
  #settled = 0;
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
    const settled = [];
    const open = this.#grow(added, settled);
    this.#keep(this.#settled, [...settled, ...open]);
    this.#settled += settled.length;
    return this.blocks;
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
    this.#keep(0, blocks);
    return this.blocks;
  }

  /** From `start` on, `blocks` are the blocks; one that is as it was is the same object. */
  #keep(start, blocks) {
    const before = this.blocks.slice(start);
    const kept = blocks.map((block, at) => (same(before[at], block) ? before[at] : block));
    this.blocks = [...this.blocks.slice(0, start), ...kept];
  }

  #forget() {
    this.#raw = "";
    this.#tail = "";
    this.#fence = null;
    this.#open = null;
    this.#settled = 0;
    this.#references = {};
  }

  /** The blocks that are not settled, after `added`; those that are now go into `settled`. */
  #grow(added, settled) {
    if (this.#fence === null) {
      this.#tail += added;
      const open = this.#open?.append(added) ?? null;
      return open === null ? this.#reparse(settled) : [open];
    }
    const rest = this.#fence.append(added);
    if (rest === null) return [this.#fence.block];
    settled.push(this.#fence.block);
    this.#fence = null;
    this.#tail = rest;
    return this.#reparse(settled);
  }

  #reparse(settled) {
    let tail = this.#parse(this.#tail, this.#known());
    const boundary = lastBoundary(tail, this.#tail);
    if (boundary !== null) {
      settled.push(...this.#parse(this.#tail.slice(0, boundary), this.#references));
      this.#tail = this.#tail.slice(boundary);
      tail = this.#parse(this.#tail, this.#known());
    }
    const [alone] = tail.length === 1 ? tail : [{}];
    this.#fence = alone.code === undefined ? null : OpenFence.of(this.#tail, alone);
    this.#open = this.#opened(alone);
    return this.#open === null ? tail : [this.#open.block];
  }

  /** What takes more of the block that the tail is, without parsing all of it; null if nothing does. */
  #opened(block) {
    if (block.html === undefined) return null;
    const parse = (text, keep) => this.#tokens(text, keep ? this.#references : this.#known());
    const Kind = block.pieces === undefined ? LongBlock : OpenRows;
    return Kind.of(this.#tail, block, parse);
  }

  /** The links known so far; what is defined on top of them is forgotten again. */
  #known() {
    return Object.create(this.#references);
  }

  /** The tokens of each block of a source, and what renders some of them. */
  #tokens(source, references) {
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
      const rows = rowsOf(tokens, render);
      const html = rows === null ? render(tokens) : `${rows.frame[0]}${rows.pieces.join("")}${rows.frame[1]}`;
      return { line, end, ...rows, html };
    });
  }
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
    (one.html ?? one.code) !== undefined &&
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
 * Where the last block begins that no later text can join to the one before it. After a blank line
 * that takes no more than a line that begins no item and no code, or is complete; else its second line
 * is complete too ("a|b" and "-|-" make a table only together). Null if there is none.
 */
function lastBoundary(blocks, source) {
  const starts = [0];
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) starts.push(at + 1);
  const complete = starts.length - 1;
  const lineAt = (number) => source.slice(starts[number], starts[number + 1]);
  for (const { line, end } of blocks.slice(1).reverse()) {
    const blankBefore = lineAt(line - 1).trim() === "";
    const certain = blankBefore && !MAY_GO_ON.test(lineAt(line)) ? line - 1 : blankBefore ? line : line + 1;
    if (certain >= complete) continue;
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
