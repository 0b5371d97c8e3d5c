// The rows of a thread that are not answers: the person's messages, notices, marks, what waits.

import { clone, setText } from "./dom.js";
import { clockTime, fullTime } from "./format.js";
import { gettext } from "./i18n.js";
import { notSentWords, personWords, sendsWords, speakerWords, summaryWords } from "./thread_words.js";
import { WORDS, ordinal } from "./words.js";

/** The person's own message: a bubble, the same before and after the server confirmed it. */
export class UserView {
  #parts;
  #actions;

  constructor(actions) {
    const { element, parts } = clone("t-user");
    this.element = element;
    this.#parts = parts;
    this.#actions = actions;
  }

  update(item) {
    const state = item.pending ? pendingState(item) : "sent";
    setText(this.#parts.heading, speakerWords(item.createdAt && clockTime(item.createdAt)));
    setText(this.#parts.text, item.pending ? item.content : item.text);
    this.#parts.bubble.title = item.createdAt ? fullTime(item.createdAt) : "";
    this.element.dataset.state = state;
    this.#parts.editOwn.hidden = item.pending || !item.editable;
    this.#parts.editOwn.onclick = () => this.#actions.editOwn(item.id);
    this.#note(item, state);
  }

  #note(item, state) {
    const { note, words, edit, remove, again } = this.#parts;
    note.hidden = state === "sent" || state === "sending";
    if (note.hidden) return;
    const mayChange = !item.tried || item.failed !== null;
    setText(words, noteWords(item, state));
    edit.hidden = remove.hidden = !mayChange;
    again.hidden = state !== "failed";
    edit.onclick = () => this.#actions.editPending(item.clientMessageId);
    remove.onclick = () => this.#actions.removePending(item.clientMessageId);
    again.onclick = () => this.#actions.retryPending(item.clientMessageId);
  }
}

function pendingState(item) {
  if (item.failed !== null) return "failed";
  return item.connected ? "sending" : "waiting";
}

function noteWords(item, state) {
  if (state === "failed") return notSentWords(item.failed);
  if (item.tried) return gettext("Sent before the connection broke; confirmed when back");
  return sendsWords(ordinal(item.place));
}

export class OperatorView {
  #parts;

  constructor() {
    const { element, parts } = clone("t-operator");
    this.element = element;
    this.#parts = parts;
  }

  update(item) {
    const name = item.author?.name ?? gettext("Operator");
    const time = item.createdAt ? clockTime(item.createdAt) : "";
    setText(this.#parts.heading, personWords(name, time));
    setText(this.#parts.avatar, name.slice(0, 1).toUpperCase());
    setText(this.#parts.name, name);
    setText(this.#parts.time, time);
    setText(this.#parts.text, item.text);
  }
}

/** A notice; the one that closes a failed turn is an error with the way on. */
export class NoticeView {
  #parts;
  #actions;

  constructor(actions) {
    const { element, parts } = clone("t-notice");
    this.element = element;
    this.#parts = parts;
    this.#actions = actions;
  }

  update(item) {
    const failed = item.failed !== null;
    this.element.dataset.state = failed ? "failed" : "plain";
    this.#parts.failedIcon.toggleAttribute("hidden", !failed);
    this.#parts.plainIcon.toggleAttribute("hidden", failed);
    setText(this.#parts.text, item.text || WORDS.failedFallback);
    const { retry, another } = this.#parts;
    retry.hidden = !item.failed?.retryable;
    another.hidden = !item.failed?.another;
    if (!failed) return;
    retry.onclick = () => this.#actions.retryTurn(item.failed.turnId);
    another.onclick = () => this.#actions.retryWithAnother(item.failed.turnId, another);
  }
}

/** Folded text under one line: an attempt that broke off, a summary across the thread. */
export class FoldView {
  #parts;

  constructor(template = "t-fold") {
    const { element, parts } = clone(template);
    this.element = element;
    this.#parts = parts;
  }

  update(item) {
    const summary = item.type === "summary";
    setText(this.#parts.words, summary ? summaryWords(item.count) : gettext("Interrupted attempt"));
    setText(this.#parts.text, item.text);
  }
}

/** The line under an answer in the making. Its seconds tick by `tick(now)`. */
export class WorkingView {
  #parts;
  #item = null;

  constructor() {
    const { element, parts } = clone("t-working");
    this.element = element;
    this.#parts = parts;
  }

  update(item) {
    this.#item = item;
    this.#parts.mark.toggleAttribute("hidden", !item.connected);
    this.#parts.away.toggleAttribute("hidden", item.connected);
    setText(this.#parts.words, workingWords(item));
    this.tick(Date.now());
  }

  tick(now) {
    const { startedAt, connected } = this.#item;
    const seconds = startedAt && connected ? Math.floor((now - startedAt) / 1000) : 0;
    setText(this.#parts.seconds, seconds > 0 ? `${seconds} s` : "");
  }
}

function workingWords({ connected, retrying }) {
  if (!connected) return WORDS.away;
  return retrying ? WORDS.retrying : WORDS.working;
}
