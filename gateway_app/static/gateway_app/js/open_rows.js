// A list or a table that is still being written, at the top level. An item or a row with another one
// after it is done and stays as it is; only the last one is parsed again when more of it comes.
//
// It is parsed with something before it that stands for all that is done: the table's head, or an
// item like the list's, which is loose if one of those is. So the parser itself says whether what
// comes is one more item, and whether the list as a whole is loose.

import { rowsOf } from "./rows.js";

export class OpenRows {
  #parse;
  #frame;
  #item;
  #before;
  #done = [];
  #rest;
  #loose = null;
  block;

  /**
   * The list or table that `source` is as a whole, if something of it is done; else null. `parse`
   * gives, for a source, the tokens of each block and what renders some of them; told to keep them,
   * it knows from then on the links that are defined there.
   */
  static of(source, block, parse) {
    const from = startOf(source, block.line);
    if (block.pieces.length < 2 || source.slice(0, from).trim() !== "") return null;
    const rows = new OpenRows(source.slice(from), block, parse);
    return rows.#done.length > 0 ? rows : null;
  }

  constructor(source, { frame, marker }, parse) {
    const head = marker === null ? startOf(source, 2) : 0;
    this.#parse = parse;
    this.#frame = frame;
    this.#item = marker && `${marker}    x\n`;
    this.#before = this.#item ?? source.slice(0, head);
    this.#rest = source.slice(head);
    this.block = this.append("");
  }

  /** Takes what was added; the block as it is now, or null if it is over or has become another. */
  append(added) {
    this.#rest += added;
    const source = this.#before + this.#rest;
    const { groups, render } = this.#parse(source);
    if (groups.length !== 1) return null;
    // Once the list turns out to be loose, or not to be, what is done looks different.
    const loose = this.#isLoose(groups[0]);
    this.#loose ??= loose;
    if (loose !== this.#loose) return null;
    const { pieces, lines } = rowsOf(groups[0], render);
    if (this.#item !== null) [pieces, lines].forEach((all) => all.shift());
    this.#close(source, pieces, lines);
    this.block = { frame: this.#frame, pieces: [...this.#done, ...pieces] };
    return this.block;
  }

  /** Takes the pieces that are done out of `pieces`: those before the last one with a whole line. */
  #close(source, pieces, lines) {
    let last = lines.length - 1;
    if (source.indexOf("\n", startOf(source, lines[last])) < 0) last -= 1;
    if (last < 1) return;
    const start = startOf(source, lines[last]);
    this.#done.push(...pieces.splice(0, last));
    if (this.#item !== null) {
      const { groups } = this.#parse(source.slice(0, start) + this.#item, true);
      this.#before = this.#isLoose(groups[0]) ? `${this.#item}\n` : this.#item;
    }
    this.#rest = source.slice(start);
  }

  /** By the paragraph of the item that stands for others. */
  #isLoose([, , paragraph]) {
    return this.#item !== null && !paragraph.hidden;
  }
}

/** Where a line begins. */
function startOf(source, line) {
  let at = 0;
  for (let number = 0; number < line; number += 1) at = source.indexOf("\n", at) + 1;
  return at;
}
