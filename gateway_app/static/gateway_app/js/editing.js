// The message of one's own that is being written again, one a page. Its words stand in the
// composer's field; what was written there before comes back afterwards.

export class Editing {
  #edited = null;

  /** {messageId, text} if a message of this conversation is being edited, else null. */
  of(conversation) {
    return this.#edited?.conversation === conversation ? this.#edited : null;
  }

  begin(conversation, messageId, text) {
    this.#edited = { conversation, messageId, text };
  }

  end() {
    this.#edited = null;
  }
}

/** The newest message of this person that a model has seen; null: there is none. */
export function lastOwnMessage(state, userId) {
  const own = state.messages.findLast(
    (message) => message.kind === "user" && message.state === "active",
  );
  return own?.author?.id === userId ? own : null;
}
