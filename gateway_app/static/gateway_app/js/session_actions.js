// What a person can do with a conversation as a whole. No drawing here.

import { copyText } from "./dom.js";
import { saveFile } from "./download.js";
import { interpolate } from "./i18n.js";
import { isNew } from "./sender.js";
import { WORDS } from "./words.js";

export class SessionActions {
  #model;
  #screen;

  /** `model` as chat.js makes it; `screen` draws it and tells what went wrong. */
  constructor(model, screen) {
    this.#model = model;
    this.#screen = screen;
  }

  async rename(sessionId, title) {
    await this.#screen.attempt(() => this.#model.sessions.update(sessionId, { title }));
  }

  async pin(session) {
    const pinned = !session.pinned;
    if (!(await this.#screen.attempt(() => this.#model.sessions.update(session.id, { pinned })))) return;
    this.#screen.say(pinned ? WORDS.pinned : WORDS.unpinned);
  }

  /** Out of the list or back into it, with the way back. The conversation stays open. */
  async archive(session) {
    const { sessions } = this.#model;
    const archived = !session.archived;
    const put = (value) => this.#screen.attempt(() => sessions.update(session.id, { archived: value }));
    if (!(await put(archived))) return;
    const words = archived ? WORDS.archived : WORDS.unarchived;
    this.#screen.offer(named(words, session), () => put(!archived));
  }

  async copyLink(sessionId) {
    await copyText(new URL(`/c/${sessionId}/`, location.href).href);
    this.#screen.offer(WORDS.linkCopied, null);
  }

  /** `form`: markdown or jsonl. The server makes the file, and says whose it may be. */
  async exportAs(sessionId, form) {
    await this.#screen.attempt(async () => {
      const name = await saveFile(`/api/v1/sessions/${sessionId}/export?form=${form}`);
      this.#screen.offer(interpolate(WORDS.exported, [name]), null);
    });
  }

  /** Deletes at once and offers the way back. */
  async remove(session) {
    const { sessions, conversation, feeds } = this.#model;
    if (!(await this.#screen.attempt(() => sessions.remove(session.id)))) return;
    const wasOpen = conversation.current === session.id;
    feeds.forget(session.id);
    if (wasOpen) this.startNew();
    else this.#screen.home(); // the row that had the focus is gone
    this.#screen.offer(named(WORDS.deleted, session), () => this.#restore(session.id, wasOpen));
  }

  startNew() {
    const { conversation } = this.#model;
    if (!isNew(conversation.current) || location.pathname !== "/") conversation.startNew();
    this.#screen.home();
  }

  async #restore(sessionId, open) {
    const { sessions, conversation } = this.#model;
    if (!(await this.#screen.attempt(() => sessions.restore(sessionId)))) return;
    this.#screen.say(WORDS.restored);
    if (open) conversation.open(sessionId);
  }
}

function named(words, session) {
  return interpolate(words, [session.title || WORDS.untitled]);
}
