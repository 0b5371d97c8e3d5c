// A long paragraph or quote while it grows: its pieces stay on the page as they are, but for the last.

import { markup } from "./markup.js";

export class PiecesBlock {
  #frame = null;
  #pieces = [];
  #nodes = [];
  element = null;

  /** False if the block is another one than the one that is drawn. */
  update({ frame, pieces }) {
    if (this.#frame !== null && frame.some((html, at) => html !== this.#frame[at])) return false;
    this.element ??= markup(frame.join("")).firstElementChild;
    this.#frame = frame;
    let same = 0;
    while (same < this.#pieces.length && this.#pieces[same] === pieces[same]) same += 1;
    for (const node of this.#nodes.splice(same).flat()) node.remove();
    for (const piece of pieces.slice(same)) {
      const nodes = [...markup(`${frame[0]}${piece}${frame[1]}`).firstElementChild.childNodes];
      this.element.append(...nodes);
      this.#nodes.push(nodes);
    }
    this.#pieces = pieces;
    return true;
  }
}
