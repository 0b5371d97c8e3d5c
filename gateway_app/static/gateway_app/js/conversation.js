// Which conversation the page shows, and its address. A conversation is a session id, or
// "new:<id>" until its first message opened a session.

import { newClientMessageId } from "./protocol.js";
import { isNew } from "./sender.js";

const PATH = /^\/c\/([0-9a-f-]{36})\/$/;

export class Conversation {
  #onChange;
  current;

  /** `waiting()` is the newest unsent conversation without a session, or null. */
  constructor({ onChange, waiting }) {
    this.#onChange = onChange;
    this.current = fromPath() ?? waiting() ?? fresh();
    window.addEventListener("popstate", () => {
      this.current = fromPath() ?? fresh();
      onChange();
    });
  }

  get sessionId() {
    return isNew(this.current) ? null : this.current;
  }

  open(sessionId) {
    if (sessionId === this.current) return;
    history.pushState(null, "", `/c/${sessionId}/`);
    this.current = sessionId;
    this.#onChange();
  }

  startNew() {
    if (location.pathname !== "/") history.pushState(null, "", "/");
    this.current = fresh();
    this.#onChange();
  }

  /** The first message opened a session: the same conversation under its real address. */
  opened(sessionId) {
    history.replaceState(null, "", `/c/${sessionId}/`);
    this.current = sessionId;
    this.#onChange();
  }
}

function fromPath() {
  return PATH.exec(location.pathname)?.[1] ?? null;
}

function fresh() {
  return `new:${newClientMessageId()}`;
}
