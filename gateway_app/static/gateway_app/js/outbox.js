// Messages that a person sent and the server has not yet confirmed. Kept in the browser's storage,
// so that they outlive a reload; each is sent under one clientMessageId until it is confirmed.
//
// An entry: {clientMessageId, conversation, content, createdAt, tried, failed: sentence | null},
// and what was chosen for it: agent, model (of a conversation that it opens), whenBusy.
// `conversation` is a session id, or "new:<id>" for one that its first message will open.

export class Outbox {
  #storage;
  #name;
  entries;

  /** `storage` has getItem and setItem; `name` is the key, one per person. */
  constructor(storage, name) {
    this.#storage = storage;
    this.#name = name;
    this.entries = this.#read();
  }

  add(message) {
    const entry = { ...message, tried: false, failed: null };
    this.#change((entries) => [...entries, entry]);
  }

  /** What waits to be sent, first in first out. */
  next() {
    return this.entries.find((entry) => entry.failed === null) ?? null;
  }

  get(clientMessageId) {
    return this.entries.find((entry) => entry.clientMessageId === clientMessageId) ?? null;
  }

  of(conversation) {
    return this.entries.filter((entry) => entry.conversation === conversation);
  }

  /** From now on the server may have it: it can be sent again, but not changed. */
  markTried(clientMessageId) {
    this.#update(clientMessageId, { tried: true });
  }

  fail(clientMessageId, sentence) {
    this.#update(clientMessageId, { failed: sentence });
  }

  retry(clientMessageId) {
    this.#update(clientMessageId, { failed: null });
  }

  remove(clientMessageId) {
    this.#change((entries) => entries.filter((entry) => entry.clientMessageId !== clientMessageId));
  }

  /** The first message opened the session: its followers go there too. */
  rename(conversation, sessionId) {
    this.#change((entries) =>
      entries.map((entry) =>
        entry.conversation === conversation ? { ...entry, conversation: sessionId } : entry,
      ),
    );
  }

  /** Another tab wrote: its view of what is kept is as good as ours. Gives what is gone. */
  reload() {
    const before = this.entries;
    this.entries = this.#read();
    return before.filter(({ clientMessageId }) => this.get(clientMessageId) === null);
  }

  #update(clientMessageId, fields) {
    this.#change((entries) =>
      entries.map((entry) =>
        entry.clientMessageId === clientMessageId ? { ...entry, ...fields } : entry,
      ),
    );
  }

  /** Read, change, write in one go: another tab's entries survive ours. */
  #change(change) {
    this.entries = change(this.#read());
    this.#storage.setItem(this.#name, JSON.stringify(this.entries));
  }

  #read() {
    try {
      const entries = JSON.parse(this.#storage.getItem(this.#name) ?? "[]");
      return Array.isArray(entries) ? entries : [];
    } catch {
      return [];
    }
  }
}

/**
 * Where another tab's write moved the messages of `conversation`: the session that its first one
 * opened; null if they stay. `before` and `after` are the storage's texts.
 */
export function movedTo(conversation, before, after) {
  const there = new Set(
    JSON.parse(before ?? "[]")
      .filter((entry) => entry.conversation === conversation)
      .map((entry) => entry.clientMessageId),
  );
  const now = JSON.parse(after ?? "[]").find((entry) => there.has(entry.clientMessageId));
  return now === undefined || now.conversation === conversation ? null : now.conversation;
}
