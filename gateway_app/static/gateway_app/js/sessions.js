// The person's conversations: two lists, those at hand and the archived ones, and what changes one
// of them. The server tells every tab of every change; what got lost is healed by listing again.

import { command } from "./protocol.js";
import { Pages } from "./pages.js";

const AGAIN_MS = 60_000;

export class Sessions {
  #connection;
  #onChange;
  #pages;
  /** Which of the two is looked at. */
  archived = false;

  constructor({ connection, clock, onChange }) {
    this.#connection = connection;
    this.#onChange = onChange;
    const ask = (fields) => this.#ask(command.listSessions(fields));
    this.#pages = [new Pages(ask, { archived: false }), new Pages(ask, { archived: true })];
    const again = () => {
      if (!globalThis.document?.hidden) this.refresh();
      clock.setTimeout(again, AGAIN_MS);
    };
    clock.setTimeout(again, AGAIN_MS);
  }

  get #shown() {
    return this.#pages[Number(this.archived)];
  }

  get list() {
    return this.#shown.list;
  }

  get loaded() {
    return this.#shown.loaded;
  }

  get hasMore() {
    return this.#shown.hasMore;
  }

  /** Something unread in a list at hand, but for what is looked at now. */
  hasNews(current) {
    return this.#pages[0].list.some((session) => session.unread && session.id !== current);
  }

  find(sessionId) {
    return this.#pages[0].find(sessionId) ?? this.#pages[1].find(sessionId);
  }

  show({ archived }) {
    this.archived = archived;
    this.#onChange();
    this.refresh();
  }

  /** Whether there is an archive to look into. */
  get hasArchived() {
    return this.#pages[1].list.length > 0;
  }

  /** The list that is looked at; at first both, to know whether there is an archive. */
  async refresh() {
    const due = this.#pages[1].loaded ? [this.#shown] : this.#pages;
    const came = await Promise.all(due.map((pages) => pages.refresh()));
    if (came.includes(true)) this.#onChange();
  }

  /** One page more of the list that is looked at; true if it came. */
  async loadMore() {
    const came = await this.#shown.loadMore();
    if (came) this.#onChange();
    return came;
  }

  /** A frame about the list; true if it was one. */
  accept(frame) {
    if (frame.kind !== "control") return false;
    if (frame.type === "session") this.#put(frame.session);
    else if (frame.type === "gone") this.#drop(frame.sessionId);
    else return false;
    return true;
  }

  /** The session's row as a feed knows it: its title may be newer than the list's, its time not. */
  note(session) {
    const known = this.find(session.id);
    if (known?.title === session.title) return;
    const updatedAt = known && known.updatedAt > session.updatedAt ? known.updatedAt : session.updatedAt;
    this.#put({ ...known, ...session, updatedAt });
  }

  /** The person saw it; the other devices are told by the server. */
  seen(sessionId, revision) {
    const known = this.find(sessionId);
    if (known?.unread) this.#put({ ...known, unread: false });
    return this.#connection.request(command.seen(sessionId, revision));
  }

  /** `fields`: title, pinned, archived. */
  async update(sessionId, fields) {
    const result = await this.#connection.request(command.update(sessionId, fields));
    this.#put(result.session);
  }

  async remove(sessionId) {
    await this.#connection.request(command.remove(sessionId));
    this.#drop(sessionId);
  }

  async restore(sessionId) {
    const result = await this.#connection.request(command.restore(sessionId));
    this.#put(result.session);
  }

  /** Titles that hold the words, those at hand before archived ones; null if nobody could say. */
  async search(query, limit) {
    const asked = [false, true].map((archived) =>
      this.#ask(command.listSessions({ query, archived, limit })),
    );
    const pages = await Promise.all(asked);
    return pages.includes(null) ? null : pages.flatMap((page) => page.sessions).slice(0, limit);
  }

  /** The result, or null if the connection would not give it: the list stays as it is. */
  async #ask(body) {
    try {
      return await this.#connection.request(body);
    } catch {
      return null;
    }
  }

  #put(session) {
    for (const pages of this.#pages) pages.put(session);
    this.#onChange();
  }

  #drop(sessionId) {
    for (const pages of this.#pages) pages.drop(sessionId);
    this.#onChange();
  }
}
