// What a person can do in the open conversation, in terms of commands. No drawing here.

import { lastOwnMessage } from "./editing.js";
import { gettext, interpolate } from "./i18n.js";
import { command, newClientMessageId, plainText } from "./protocol.js";
import { isNew } from "./sender.js";
import { WORDS } from "./words.js";

export class Actions {
  #model;
  #screen;

  /** `model` as chat.js makes it; `screen` draws it and tells what went wrong. */
  constructor(model, screen) {
    this.#model = model;
    this.#screen = screen;
  }

  /** True if the message is taken: from then on it is kept until the server has it. */
  send(text, whenBusy = null) {
    const { conversation, editing, models, outbox, sender } = this.#model;
    if (editing.of(conversation.current) !== null) {
      this.#saveEdit(text);
      return false;
    }
    outbox.add({
      clientMessageId: newClientMessageId(),
      conversation: conversation.current,
      content: text,
      createdAt: new Date().toISOString(),
      whenBusy,
      ...(isNew(conversation.current) && models.choice),
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

  /** Another version of a message or of an answer, with what followed it; `words` tell which. */
  async selectBranch(messageId, words) {
    const { conversation, connection } = this.#model;
    if (!connection.ready) return this.#screen.refuse(WORDS.offline);
    const asked = command.selectBranch(conversation.sessionId, messageId);
    if ((await this.#ask(asked)) !== null) this.#screen.say(words);
  }

  /** The menu of models opens at the button; the turn is tried again with the one that is picked. */
  retryWithAnother(turnId, button) {
    this.#screen.openModels(button, async (choice) => {
      if (await this.configure(choice)) this.retryTurn(turnId);
    });
  }

  async editQueued(turnId, content) {
    this.#showQueue(await this.#ask(command.editQueued(turnId, { content })));
  }

  /** The running answer stops, and this message is next. */
  async sendQueuedNow(turnId) {
    this.#showQueue(await this.#ask(command.editQueued(turnId, { whenBusy: "interrupt" })));
  }

  async removeQueued(turnId) {
    this.#showQueue(await this.#ask(command.removeQueued(turnId)));
  }

  /** The last message of one's own goes back into the field, wherever it is by now. */
  editLast() {
    const { conversation, connection, feeds, outbox, page } = this.#model;
    const kept = outbox.of(conversation.current).at(-1);
    if (kept !== undefined) {
      if (!kept.tried || kept.failed !== null) this.editPending(kept.clientMessageId);
      return;
    }
    const state = feeds.get(conversation.sessionId);
    if (state?.queue.length > 0) return this.#screen.editQueued();
    const message = state && connection.ready ? lastOwnMessage(state, page.user.id) : null;
    if (message !== null) this.editMessage(message);
  }

  /** A message of one's own goes back into the field; what follows it becomes another branch. */
  editOwn(messageId) {
    const { conversation, connection, feeds } = this.#model;
    if (!connection.ready) return this.#screen.refuse(WORDS.offline);
    const state = feeds.get(conversation.sessionId);
    const message = state?.messages.find(({ id }) => id === messageId);
    if (message !== undefined) this.editMessage(message);
  }

  /** Why the words in the field cannot be sent. */
  refuse(sentence) {
    this.#screen.refuse(sentence);
  }

  editMessage(message) {
    const { conversation, editing } = this.#model;
    editing.begin(conversation.current, message.id, plainText(message.parts));
    this.#screen.editBegan(editing.of(conversation.current).text);
  }

  cancelEdit() {
    this.#model.editing.end();
    this.#screen.editEnded();
  }

  /** Another agent or model: of the open conversation, or of the next new one. True if it is so. */
  async configure({ agent = null, model = null }) {
    const { conversation, models, sessions } = this.#model;
    const { sessionId } = conversation;
    if (sessionId === null) {
      models.choose({ ...models.choice, ...(agent === null ? { model } : { agent, model: null }) });
      return true;
    }
    const chosen = agent === null ? { model } : { agent, model: "" };
    if (!(await this.#screen.attempt(() => sessions.update(sessionId, chosen)))) return false;
    this.#screen.say(answersWords(models.modelOf(sessions.find(sessionId))));
    return true;
  }

  async loadOlder() {
    const { conversation, feeds } = this.#model;
    return conversation.sessionId !== null && feeds.loadOlder(conversation.sessionId);
  }

  async #saveEdit(content) {
    const { conversation, editing, feeds } = this.#model;
    const { sessionId } = conversation;
    const { messageId } = editing.of(conversation.current);
    const running = feeds.get(sessionId)?.run !== null;
    const clientMessageId = newClientMessageId();
    const whenBusy = running ? "interrupt" : null;
    const body = command.edit({ sessionId, messageId, clientMessageId, content, whenBusy });
    if ((await this.#ask(body)) === null) return;
    this.cancelEdit();
    this.#screen.follow();
  }

  #showQueue(result) {
    const { conversation, feeds } = this.#model;
    const queue = result?.queue;
    if (queue !== undefined) feeds.setQueue(conversation.sessionId, queue);
  }

  async #ask(body) {
    let result = null;
    await this.#screen.attempt(async () => {
      result = await this.#model.connection.request(body);
    });
    return result;
  }
}

function answersWords(model) {
  return interpolate(gettext("%s answers from now on"), [model.name]);
}
