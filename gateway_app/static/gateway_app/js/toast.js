// One line at the end of the page that offers a way back. It stays while the pointer or the focus
// is in it.

import { setText } from "./dom.js";

const STAYS_MS = 12_000;

export class Toast {
  #parts;
  #timer = null;
  #undo = null;

  constructor(parts) {
    this.#parts = parts;
    parts.toastUndo.addEventListener("click", () => {
      const undo = this.#undo;
      this.hide();
      undo?.();
    });
    parts.toastClose.addEventListener("click", () => this.hide());
    for (const name of ["pointerenter", "focusin"]) {
      parts.toast.addEventListener(name, () => clearTimeout(this.#timer));
    }
    for (const name of ["pointerleave", "focusout"]) {
      parts.toast.addEventListener(name, () => this.#leaveSoon());
    }
  }

  /** `undo` may be null: then the line only tells. */
  show(words, undo) {
    this.#undo = undo;
    setText(this.#parts.toastText, words);
    this.#parts.toastUndo.hidden = undo === null;
    this.#parts.toast.hidden = false;
    this.#leaveSoon();
  }

  hide() {
    clearTimeout(this.#timer);
    this.#parts.toast.hidden = true;
    this.#undo = null;
  }

  #leaveSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.hide(), STAYS_MS);
  }
}
