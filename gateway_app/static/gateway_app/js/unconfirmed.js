// What the person sent and the server's events have not shown yet: the outbox, and what was
// confirmed a moment ago. Pure but for its own short memory.

import { isNew } from "./sender.js";

export class Unconfirmed {
  #outbox;
  #sent = [];

  constructor(outbox) {
    this.#outbox = outbox;
  }

  /** The server has it; its events will show it. A repeat was shown by them before. */
  confirmed(entry, result) {
    if (result.replayed || !["running", "queued", "held"].includes(result.status)) return;
    const conversation = isNew(entry.conversation) ? result.sessionId : entry.conversation;
    const { turnId, status } = result;
    this.#sent.push({ ...entry, conversation, tried: true, failed: null, turnId, status });
  }

  /** {bubbles, queued}: what to draw in the thread, and what in the queue, oldest first. */
  of(conversation, state, connected) {
    this.#forgetShown(conversation, state);
    const shown = new Set(state?.messages.map((message) => message.clientMessageId));
    const sent = this.#sent.filter((entry) => entry.conversation === conversation);
    const kept = this.#outbox.of(conversation).filter((entry) => !shown.has(entry.clientMessageId));
    const bubbles = sent.filter((entry) => entry.status !== "queued");
    const queued = sent.filter((entry) => entry.status === "queued");
    let busy = Boolean(state?.run) || (state?.queue.length ?? 0) > 0 || sent.length > 0;
    for (const [at, entry] of kept.entries()) {
      const drawn = { ...entry, connected, place: at + 1 };
      if (connected && busy && entry.failed === null) queued.push(drawn);
      else bubbles.push(drawn);
      busy = busy || entry.failed === null;
    }
    return { bubbles: bubbles.map((entry) => ({ connected: true, place: 1, ...entry })), queued };
  }

  #forgetShown(conversation, state) {
    if (!state) return;
    const shown = new Set(state.messages.map((message) => message.clientMessageId));
    const listed = new Set(state.queue.map((item) => item.turnId));
    this.#sent = this.#sent.filter(
      (entry) =>
        entry.conversation !== conversation ||
        (!shown.has(entry.clientMessageId) && !listed.has(entry.turnId)),
    );
  }
}
