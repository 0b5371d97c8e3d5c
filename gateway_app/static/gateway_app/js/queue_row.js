// One message that waits: its words, or a field with them while it is edited.

import { clone, setText } from "./dom.js";
import { gettext, pgettext } from "./i18n.js";

export class QueueRow {
  #parts;
  #actions;
  #item = null;
  #asked = false;

  constructor(actions) {
    const { element, parts } = clone("t-queued");
    this.element = element;
    this.#parts = parts;
    this.#actions = actions;
    parts.edit.addEventListener("click", () => this.#edit());
    parts.now.addEventListener("click", () => this.#ask((id) => actions.sendQueuedNow(id)));
    parts.remove.addEventListener("click", () => this.#ask((id) => actions.removeQueued(id)));
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    parts.field.addEventListener("keydown", (event) => this.#key(event));
    parts.cancel.addEventListener("click", () => this.#close());
  }

  update(item) {
    this.#item = item;
    setText(this.#parts.place, placeWord(item));
    setText(this.#parts.text, item.text);
    const fixed = item.turnId === null || !item.connected;
    this.#parts.edit.disabled = fixed || !item.whole;
    this.#parts.now.disabled = this.#parts.remove.disabled = fixed;
    this.#parts.now.hidden = !item.now || item.way === "interrupt";
  }

  /** Who clicks twice means it once: until the server answered, nothing more is asked. */
  async #ask(change) {
    if (this.#asked) return;
    this.#asked = true;
    await change(this.#item.turnId);
    this.#asked = false;
  }

  #edit() {
    this.#parts.field.value = this.#item.text;
    this.#parts.form.hidden = false;
    this.#parts.row.hidden = true;
    this.#parts.field.focus();
  }

  #close() {
    this.#parts.form.hidden = true;
    this.#parts.row.hidden = false;
    this.#parts.edit.focus();
  }

  #save() {
    const text = this.#parts.field.value.trim();
    if (text !== "" && text !== this.#item.text) this.#actions.editQueued(this.#item.turnId, text);
    this.#close();
  }

  #key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      this.#close();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#save();
    }
  }
}

function placeWord({ way, first }) {
  if (way === "steer") return pgettext("a message that waits", "Steers");
  return first ? pgettext("a message that waits", "Next") : gettext("Then");
}
