// What the person sent and the server's events have not shown yet: the outbox, and what was
// confirmed a moment ago. Pure but for its own short memory.

import { isNew } from "./sender.js";

const ACCEPTED = new Set(["running", "queued", "steered", "held"]);
const QUEUED = new Set(["queued", "steered"]);
/** As long as it may take until the events of what another tab sent come here. */
const ELSEWHERE_MS = 30_000;

export class Unconfirmed {
  #outbox;
  #sent = [];
  /** What was drawn as a bubble stays one: the run that begins next may well be its own. */
  #bubbles = new Set();

  constructor(outbox) {
    this.#outbox = outbox;
  }

  /** The server has it; its events will show it. A repeat was shown by them before. */
  confirmed(entry, result) {
    if (result.replayed || !ACCEPTED.has(result.status)) return;
    const conversation = isNew(entry.conversation) ? result.sessionId : entry.conversation;
    const { turnId, status } = result;
    this.#sent.push({ ...entry, conversation, tried: true, failed: null, turnId, status });
  }

  /** Another tab had these confirmed; how, this one learns from the events. */
  confirmedElsewhere(entries, at) {
    const tried = entries.filter((entry) => entry.tried && entry.failed === null);
    this.#sent.push(...tried.map((entry) => ({ ...entry, status: null, until: at + ELSEWHERE_MS })));
  }

  /** {bubbles, queued}: what to draw in the thread, and what in the queue, oldest first. */
  of(conversation, state, connected, now = 0) {
    const shown = idsShown(state);
    this.#forgetShown(conversation, state, shown, now);
    const sent = this.#sent.filter((entry) => entry.conversation === conversation);
    const kept = this.#outbox.of(conversation).filter((entry) => !shown.has(entry.clientMessageId));
    const stays = (entry) => this.#bubbles.has(entry.clientMessageId);
    const waits = (entry) =>
      QUEUED.has(entry.status) || (entry.status === null && state?.run && !stays(entry));
    const bubbles = sent.filter((entry) => !waits(entry));
    const queued = sent.filter(waits);
    let busy = Boolean(state?.run) || (state?.queue.length ?? 0) > 0 || sent.length > 0;
    for (const [at, entry] of kept.entries()) {
      const drawn = { ...entry, connected, place: at + 1 };
      if (connected && busy && entry.failed === null && !stays(entry)) queued.push(drawn);
      else bubbles.push(drawn);
      if (connected && !busy) this.#bubbles.add(entry.clientMessageId);
      busy = busy || entry.failed === null;
    }
    return { bubbles: bubbles.map((entry) => ({ connected: true, place: 1, ...entry })), queued };
  }

  #forgetShown(conversation, state, shown, now) {
    this.#sent = this.#sent.filter((entry) => (entry.until ?? now) >= now);
    if (!state) return;
    const turns = new Set(state.queue.map((item) => item.turnId));
    this.#sent = this.#sent.filter(
      (entry) =>
        entry.conversation !== conversation ||
        (!shown.has(entry.clientMessageId) && !turns.has(entry.turnId)),
    );
  }
}

/** What stands in the thread or in the queue already: its event may come before its reply. */
function idsShown(state) {
  const rows = [...(state?.messages ?? []), ...(state?.queue ?? [])];
  return new Set(rows.map((row) => row.clientMessageId));
}
