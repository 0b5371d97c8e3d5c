// Tells the server what the person has seen: the conversation that is open in a visible page, once
// nothing runs in it any more. Whoever leaves amid an answer finds it unread.

export class Seen {
  #sessions;
  #isVisible;
  #told = new Map();

  constructor({ sessions, isVisible }) {
    this.#sessions = sessions;
    this.#isVisible = isVisible;
  }

  /** `state` is that of the open conversation. */
  async look(state) {
    const { sessionId, loaded, missing, run } = state ?? {};
    if (!sessionId || !loaded || missing || run !== null || !this.#isVisible()) return;
    const revision = newest(state);
    const told = this.#told.get(sessionId) ?? -1;
    if (revision <= told && !this.#sessions.find(sessionId)?.unread) return;
    this.#told.set(sessionId, revision);
    try {
      await this.#sessions.seen(sessionId, revision);
    } catch {
      this.#told.delete(sessionId); // the next look tells it again
    }
  }
}

function newest(state) {
  return Math.max(state.revision, ...state.messages.map((message) => message.revision ?? 0));
}
