// The messages that wait for the running answer, joined to the composer. Each can be changed or
// taken out until its turn comes.

import { KeyedList, clone, setText } from "./dom.js";
import { plainText } from "./protocol.js";

const SHOWN = 3;

export class QueuePanel {
  #parts;
  #list;
  #open = false;
  #items = [];
  #connected = false;

  /** `actions`: editQueued(turnId, text), removeQueued(turnId). */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#list = new KeyedList(parts.queueItems, () => new QueueRow(actions));
    parts.queueMore.addEventListener("click", () => {
      this.#open = true;
      this.#draw();
    });
  }

  /** `items`: {key, turnId (null until confirmed), text}. They change only while connected. */
  show(items, connected) {
    if (items.length <= SHOWN) this.#open = false;
    this.#items = items;
    this.#connected = connected;
    this.#draw();
  }

  #draw() {
    const shown = this.#open ? this.#items : this.#items.slice(0, SHOWN);
    this.#parts.queue.hidden = this.#items.length === 0;
    const connected = this.#connected;
    this.#list.update(
      shown.map((item, at) => ({ ...item, type: "queued", first: at === 0, connected })),
    );
    const more = this.#items.length - shown.length;
    this.#parts.queueMore.hidden = more === 0;
    setText(this.#parts.queueMore, `${more} more`);
  }
}

class QueueRow {
  #parts;
  #actions;
  #item = null;

  constructor(actions) {
    const { element, parts } = clone("t-queued");
    this.element = element;
    this.#parts = parts;
    this.#actions = actions;
    parts.edit.addEventListener("click", () => this.#edit());
    parts.remove.addEventListener("click", () => actions.removeQueued(this.#item.turnId));
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    parts.field.addEventListener("keydown", (event) => this.#key(event));
    parts.cancel.addEventListener("click", () => this.#close());
  }

  update(item) {
    this.#item = item;
    setText(this.#parts.place, item.first ? "Next" : "Then");
    setText(this.#parts.text, item.text);
    const fixed = item.turnId === null || !item.connected;
    this.#parts.remove.disabled = fixed;
    this.#parts.edit.disabled = fixed || item.shortened; // saving would drop what is not shown
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

/** What the panel shows: the server's queue, then what was sent and is not in it yet. */
export function queueItems(queue, unconfirmed) {
  const listed = [...queue]
    .sort((one, other) => one.place - other.place)
    .map((item) => ({
      key: item.turnId,
      turnId: item.turnId,
      text: plainText(item.content),
      shortened: item.shortened === true,
    }));
  const sent = unconfirmed.map((entry) => ({
    key: entry.turnId ?? entry.clientMessageId,
    turnId: null,
    text: entry.content,
  }));
  return [...listed, ...sent];
}
