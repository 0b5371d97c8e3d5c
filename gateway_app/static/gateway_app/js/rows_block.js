// A list by its items, a table by its rows. Those that stand there already are not touched while it
// grows: their nodes stay, nothing of them is sanitised or laid out again.

import { markup } from "./markup.js";

export class RowsBlock {
  #frame = null;
  #pieces = [];
  #body = null;
  element = null;

  /** False if the block is another list or table than the one that is drawn. */
  update({ frame, pieces }) {
    if (this.#frame !== null && frame.some((html, at) => html !== this.#frame[at])) return false;
    const same = firstDifference(this.#pieces, pieces);
    const fresh = markup(`${frame[0]}${pieces.slice(same).join("")}${frame[1]}`).firstElementChild;
    if (this.#frame === null) {
      this.element = fresh;
      this.#body = bodyOf(fresh);
      // only its pieces: the line ends between them depend on how it came
      this.#body.replaceChildren(...this.#body.children);
    } else {
      while (this.#body.children.length > same) this.#body.lastElementChild.remove();
      this.#body.append(...bodyOf(fresh).children);
    }
    this.#frame = frame;
    this.#pieces = pieces;
    return true;
  }
}

function firstDifference(one, other) {
  const at = other.findIndex((part, number) => part !== one[number]);
  return at < 0 ? other.length : at;
}

/** Where its items or rows are: in the list itself, or in the table within its box. */
function bodyOf(element) {
  return element.querySelector(":scope > table > tbody") ?? element;
}
