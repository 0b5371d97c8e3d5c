// One line above the field that offers a way back. It stays while the pointer or the focus is in it.

import { setText } from "./dom.js";

const STAYS_MS = 12_000;

export class Toast {
  #parts;
  #place;
  #timer = null;
  #undo = null;

  constructor(parts) {
    this.#parts = parts;
    this.#place = parts.toast.parentElement;
    parts.drawer.addEventListener("close", () => this.#place.append(parts.toast));
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
    const { drawer, toast, toastText, toastUndo } = this.#parts;
    setText(toastText, words);
    toastUndo.hidden = undo === null;
    // A modal dialog makes the rest of the page inert: the line has to be inside it.
    (drawer.open ? drawer : this.#place).append(toast);
    toast.hidden = false;
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
