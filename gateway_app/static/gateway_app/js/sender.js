// Empties the outbox: one message after the other, each under its own id until it is confirmed.

import { CommandError, command } from "./protocol.js";
import { queueFullWords } from "./words.js";

const PAUSE_MS = 2000;

export function isNew(conversation) {
  return conversation.startsWith("new:");
}

export class Sender {
  #options;
  #busy = false;
  #timer = null;

  /**
   * options: connection, outbox, clock, withLock(work) -> Promise (one tab at a time, where the
   * browser can), maxQueued() -> number, onSent(entry, result), onChange(), onElsewhere(entries):
   * another tab sent these.
   */
  constructor(options) {
    this.#options = options;
  }

  /** Sends what waits. Safe to call at any time; it does nothing while it is at work. */
  async pump() {
    const { connection, outbox, withLock } = this.#options;
    if (this.#busy || !connection.ready || outbox.next() === null) return;
    this.#busy = true;
    try {
      await withLock(() => this.#sendAll());
    } finally {
      this.#busy = false;
    }
  }

  async #sendAll() {
    const { connection, outbox, onChange, onElsewhere } = this.#options;
    onElsewhere(outbox.reload());
    for (let entry = outbox.next(); entry !== null && connection.ready; entry = outbox.next()) {
      outbox.markTried(entry.clientMessageId);
      onChange();
      const goOn = await this.#sendOne(entry);
      onChange();
      if (!goOn) return;
    }
  }

  /** True if the next message may follow. */
  async #sendOne(entry) {
    const { connection, outbox, onSent } = this.#options;
    const { clientMessageId, conversation } = entry;
    const own = isNew(conversation) ? {} : { sessionId: conversation, agent: null, model: null };
    try {
      const result = await connection.request(command.send({ ...entry, ...own }));
      if (isNew(conversation)) outbox.rename(conversation, result.sessionId);
      outbox.remove(clientMessageId);
      onSent(entry, result);
      return true;
    } catch (error) {
      return this.#refused(entry, error);
    }
  }

  #refused(entry, error) {
    const { clock, outbox, maxQueued } = this.#options;
    if (error.code === "queue_full") {
      outbox.fail(entry.clientMessageId, queueFullWords(maxQueued()));
      return true;
    }
    if (error instanceof CommandError && !error.retryable) {
      outbox.fail(entry.clientMessageId, error.message);
      return true;
    }
    if (error instanceof CommandError) {
      clock.clearTimeout(this.#timer);
      this.#timer = clock.setTimeout(() => this.pump(), error.retryAfterMs ?? PAUSE_MS);
    }
    return false;
  }
}
