// Code on the page: text that grows at its end, later coloured. It lies in pieces of so many lines,
// so that what is added to a long one makes the browser lay out the last piece only.

import { make } from "./dom.js";

const LINES = 200; // as in code.css
const SLICE_MS = 12;

export class CodeText {
  #element;
  #code = "";
  #pieces = [];
  #coloured = false;

  constructor(element) {
    this.#element = element;
  }

  get code() {
    return this.#code;
  }

  update(code) {
    if (code === this.#code) return;
    const added = !this.#coloured && code.startsWith(this.#code) ? code.slice(this.#code.length) : null;
    if (added === null) this.#clear();
    this.#code = code;
    this.#append(added ?? code);
  }

  /**
   * Shows the runs of code_runs.js instead of the plain text. Long code is coloured piece by piece,
   * with room for others between them; it stops where the code changes meanwhile.
   */
  async colour(runs) {
    const code = this.#code;
    this.#coloured = true;
    let began = performance.now();
    for (const [piece, part] of inPieces(runs, this.#pieces)) {
      if (this.#code !== code) return;
      piece.element.replaceChildren(...part.map(draw));
      if (performance.now() - began < SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      began = performance.now();
    }
  }

  #clear() {
    this.#element.replaceChildren();
    this.#pieces = [];
    this.#coloured = false;
  }

  #append(added) {
    for (let start = 0; start < added.length; ) {
      const piece = this.#open();
      const end = endOfLines(added, start, LINES - piece.lines);
      const text = added.slice(start, end.at);
      piece.node.appendData(text);
      piece.lines += end.lines;
      piece.length += text.length;
      // A full piece has a known height: out of sight it need not be laid out.
      if (piece.lines === LINES) piece.element.classList.add("full");
      start = end.at;
    }
  }

  /** The piece that still takes lines. */
  #open() {
    const last = this.#pieces.at(-1);
    if (last !== undefined && last.lines < LINES) return last;
    const piece = { element: make("span", "lines"), node: document.createTextNode(""), lines: 0, length: 0 };
    piece.element.append(piece.node);
    this.#element.append(piece.element);
    this.#pieces.push(piece);
    return piece;
  }
}

/** Where `count` lines from `start` end, and how many there really are. */
function endOfLines(text, start, count) {
  let at = start;
  for (let lines = 0; lines < count; lines++) {
    const end = text.indexOf("\n", at);
    if (end < 0) return { at: text.length, lines };
    at = end + 1;
  }
  return { at, lines: count };
}

/** [[piece, its runs], ...]: runs are cut where a piece ends. */
function* inPieces(runs, pieces) {
  let at = 0;
  let taken = 0;
  for (const piece of pieces) {
    const part = [];
    for (let room = piece.length; room > 0 && at < runs.length; ) {
      const [kind, text] = runs[at];
      const cut = text.slice(taken, taken + room);
      part.push([kind, cut]);
      room -= cut.length;
      taken += cut.length;
      if (taken < text.length) continue;
      at += 1;
      taken = 0;
    }
    yield [piece, part];
  }
}

function draw([kind, text]) {
  return kind === "" ? document.createTextNode(text) : make("span", `code-${kind}`, text);
}
