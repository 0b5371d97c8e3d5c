// The messages that wait for the running answer, joined to the composer. Each can be changed, sent
// now or taken out until its turn comes.

import { KeyedList, setText } from "./dom.js";
import { interpolate, ngettext } from "./i18n.js";
import { plainText } from "./protocol.js";
import { QueueRow } from "./queue_row.js";

const SHOWN = 3;

export class QueuePanel {
  #parts;
  #list;
  #open = false;
  #items = [];
  #offer = null;

  /** `actions`: editQueued(turnId, text), sendQueuedNow(turnId), removeQueued(turnId). */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#list = new KeyedList(parts.queueItems, () => new QueueRow(actions));
    parts.queueMore.addEventListener("click", () => {
      this.#open = true;
      this.#draw();
    });
  }

  /**
   * `items` as `queueItems` gives them; `offer`: {connected, now (whether a message can be sent
   * before its turn)}. They change only while connected.
   */
  show(items, offer) {
    if (items.length <= SHOWN) this.#open = false;
    this.#items = items;
    this.#offer = offer;
    this.#draw();
  }

  editLast() {
    this.#open = true;
    this.#draw();
    [...this.#parts.queueItems.querySelectorAll("[data-part=edit]")].at(-1)?.click();
  }

  #draw() {
    const shown = this.#open ? this.#items : this.#items.slice(0, SHOWN);
    const offer = this.#offer;
    this.#parts.queue.hidden = this.#items.length === 0;
    this.#list.update(
      shown.map((item, at) => ({ ...item, ...offer, type: "queued", first: at === 0 })),
    );
    const more = this.#items.length - shown.length;
    this.#parts.queueMore.hidden = more === 0;
    setText(this.#parts.queueMore, interpolate(ngettext("%s more", "%s more", more), [more]));
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
      way: item.whenBusy ?? "queue",
      whole: !item.shortened,
    }));
  const sent = unconfirmed.map((entry) => ({
    key: entry.turnId ?? entry.clientMessageId,
    turnId: null,
    text: entry.content,
    way: entry.whenBusy ?? "queue",
    whole: true,
  }));
  return [...listed, ...sent];
}
