// The person's conversations: pages of the list, and what changes one of them. Other tabs of the
// same browser are told, so that their lists follow.

import { command } from "./protocol.js";
import { withFirstPage, withSession, withoutSession } from "./session_list.js";

const PAGE = 40;

export class Sessions {
  #connection;
  #onChange;
  #channel;
  #cursor = null;
  list = [];
  loaded = false;

  /** `channel` is a BroadcastChannel, or null where there is none. */
  constructor({ connection, channel, onChange }) {
    this.#connection = connection;
    this.#onChange = onChange;
    this.#channel = channel;
    if (channel) channel.onmessage = () => this.refresh();
  }

  get hasMore() {
    return this.#cursor !== null;
  }

  find(sessionId) {
    return this.list.find((session) => session.id === sessionId) ?? null;
  }

  async refresh() {
    if (!this.#connection.ready) return;
    const first = this.list.length <= PAGE;
    const page = await this.#ask(command.listSessions({ limit: PAGE }));
    if (page === null) return;
    if (first || !page.nextCursor) this.#cursor = page.nextCursor ?? null;
    this.loaded = true;
    this.#put(withFirstPage(this.list, page.sessions, !page.nextCursor));
  }

  async loadMore() {
    const cursor = this.#cursor;
    if (cursor === null) return;
    this.#cursor = null;
    const page = await this.#ask(command.listSessions({ limit: PAGE, cursor }));
    this.#cursor = page === null ? cursor : page.nextCursor ?? null;
    if (page !== null) this.#put(page.sessions.reduce(withSession, this.list));
  }

  /** The session's row as a feed knows it: its title may be newer than the list's, its time not. */
  note(session) {
    const known = this.find(session.id);
    if (known?.title === session.title) return;
    const updatedAt = known && known.updatedAt > session.updatedAt ? known.updatedAt : session.updatedAt;
    this.#put(withSession(this.list, { ...known, ...session, updatedAt }));
  }

  async rename(sessionId, title) {
    const result = await this.#connection.request(command.rename(sessionId, title));
    this.note(result.session);
    this.tellOthers();
  }

  async remove(sessionId) {
    await this.#connection.request(command.remove(sessionId));
    this.#put(withoutSession(this.list, sessionId));
    this.tellOthers();
  }

  async restore(sessionId) {
    const result = await this.#connection.request(command.restore(sessionId));
    this.note(result.session);
    this.tellOthers();
  }

  tellOthers() {
    this.#channel?.postMessage("sessions");
  }

  /** The result, or null if the connection would not give it: the list stays as it is. */
  async #ask(body) {
    try {
      return await this.#connection.request(body);
    } catch {
      return null;
    }
  }

  #put(list) {
    this.list = list;
    this.#onChange();
  }
}
