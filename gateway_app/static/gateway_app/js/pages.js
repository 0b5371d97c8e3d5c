// One list of conversations as far as it was loaded: the pinned ones, and pages of the others.

import { withFirstPage, withSession, withoutSession } from "./session_list.js";

const PAGE = 40;
const PINNED = 100;

export class Pages {
  #ask;
  #archived;
  #cursor = null;
  #loading = false;
  list = [];
  loaded = false;

  /** `ask(fields)` lists sessions; its result is null where the connection failed. */
  constructor(ask, { archived }) {
    this.#ask = ask;
    this.#archived = archived;
  }

  get hasMore() {
    return this.#cursor !== null;
  }

  find(sessionId) {
    return this.list.find((session) => session.id === sessionId) ?? null;
  }

  /** The first page again; true if it came. */
  async refresh() {
    const archived = this.#archived;
    const first = this.list.length <= PAGE;
    const [pinned, page] = await Promise.all([
      this.#ask({ archived, pinned: true, limit: PINNED }),
      this.#ask({ archived, pinned: false, limit: PAGE }),
    ]);
    if (pinned === null || page === null) return false;
    if (first || !page.nextCursor) this.#cursor = page.nextCursor ?? null;
    this.loaded = true;
    const others = this.list.filter((session) => !session.pinned);
    this.list = [...pinned.sessions, ...withFirstPage(others, page.sessions, !page.nextCursor)];
    return true;
  }

  /** One page more; true if there is something new. */
  async loadMore() {
    const cursor = this.#cursor;
    if (cursor === null || this.#loading) return false;
    this.#loading = true;
    const page = await this.#ask({ archived: this.#archived, pinned: false, limit: PAGE, cursor });
    this.#loading = false;
    if (page === null) return false;
    this.#cursor = page.nextCursor ?? null;
    this.list = page.sessions.reduce(withSession, this.list);
    return true;
  }

  /** The row as it is now; it goes if it belongs to the other list. */
  put(session) {
    const others = withoutSession(this.list, session.id);
    this.list = session.archived === this.#archived ? withSession(others, session) : others;
  }

  drop(sessionId) {
    this.list = withoutSession(this.list, sessionId);
  }
}
