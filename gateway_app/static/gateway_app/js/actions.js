// What a person can do on the page, in terms of commands. No drawing here.

import { formatBytes } from "./format.js";
import { command, newClientMessageId } from "./protocol.js";
import { isNew } from "./sender.js";
import { WORDS, tooLargeWords } from "./words.js";

export class Actions {
  #model;
  #screen;

  /** `model` as chat.js makes it; `screen` draws it and tells what went wrong. */
  constructor(model, screen) {
    this.#model = model;
    this.#screen = screen;
  }

  /** True if the message is taken: from then on it is kept until the server has it. */
  send(text) {
    const { page, conversation, outbox, sender } = this.#model;
    const clientMessageId = newClientMessageId();
    const frame = command.send({ sessionId: conversation.current, clientMessageId, content: text });
    const size = new TextEncoder().encode(JSON.stringify(frame)).length;
    const limit = page.limits.maxFrameBytes;
    if (size > limit) {
      this.#screen.refuse(tooLargeWords(formatBytes(size), formatBytes(limit)));
      return false;
    }
    outbox.add({
      clientMessageId,
      conversation: conversation.current,
      content: text,
      createdAt: new Date().toISOString(),
    });
    this.#screen.follow();
    sender.pump();
    return true;
  }

  /** The text goes back to the field, before what is written there; the entry is gone. */
  editPending(clientMessageId) {
    const entry = this.#model.outbox.get(clientMessageId);
    if (entry === null) return;
    this.#model.outbox.remove(clientMessageId);
    this.#screen.takeBack(entry.content);
  }

  removePending(clientMessageId) {
    this.#model.outbox.remove(clientMessageId);
    this.#screen.draw();
  }

  retryPending(clientMessageId) {
    this.#model.outbox.retry(clientMessageId);
    this.#screen.draw();
    this.#model.sender.pump();
  }

  stop() {
    const { sessionId } = this.#model.conversation;
    if (sessionId !== null) this.#ask(command.stop(sessionId));
  }

  retryTurn(turnId) {
    const { sessionId } = this.#model.conversation;
    this.#ask(command.retry(sessionId, turnId, newClientMessageId()));
  }

  async editQueued(turnId, text) {
    this.#showQueue(await this.#ask(command.editQueued(turnId, text)));
  }

  async removeQueued(turnId) {
    this.#showQueue(await this.#ask(command.removeQueued(turnId)));
  }

  loadOlder() {
    const { conversation, feeds } = this.#model;
    if (conversation.sessionId !== null) feeds.loadOlder(conversation.sessionId);
  }

  async rename(sessionId, title) {
    await this.#try(() => this.#model.sessions.rename(sessionId, title));
  }

  /** Deletes at once and offers the way back. */
  async remove(session) {
    const { sessions, conversation, feeds } = this.#model;
    if (!(await this.#try(() => sessions.remove(session.id)))) return;
    const wasOpen = conversation.current === session.id;
    feeds.forget(session.id);
    if (wasOpen) this.startNew();
    const name = session.title || WORDS.untitled;
    this.#screen.offer(`“${name}” deleted`, () => this.#restore(session.id, wasOpen));
  }

  startNew() {
    const { conversation } = this.#model;
    if (!isNew(conversation.current) || location.pathname !== "/") conversation.startNew();
    this.#screen.home();
  }

  async #restore(sessionId, open) {
    const { sessions, conversation } = this.#model;
    if (!(await this.#try(() => sessions.restore(sessionId)))) return;
    this.#screen.say(WORDS.restored);
    if (open) conversation.open(sessionId);
  }

  #showQueue(result) {
    const { conversation, feeds } = this.#model;
    const queue = result?.queue;
    if (queue !== undefined) feeds.setQueue(conversation.sessionId, queue);
  }

  async #ask(body) {
    let result = null;
    await this.#try(async () => {
      result = await this.#model.connection.request(body);
    });
    return result;
  }

  /** True if it was done; else the person is told why not. */
  async #try(work) {
    try {
      await work();
      return true;
    } catch (error) {
      this.#screen.alarm(error.message);
      return false;
    }
  }
}
