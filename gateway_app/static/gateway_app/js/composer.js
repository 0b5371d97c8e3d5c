// The field where the person writes: Enter sends, Shift+Enter breaks the line, and an input method
// that is composing keeps its Enter. The draft is kept with every change.

import { setText } from "./dom.js";

const GROWS_TO = 0.4;
const LONG = 20_000;

export class Composer {
  #parts;
  #actions;
  #mode = null;

  /** `actions`: send(text) -> true if taken, stop(), draft(text). */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#actions = actions;
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    parts.text.addEventListener("keydown", (event) => this.#key(event));
    parts.text.addEventListener("input", () => this.#changed());
    parts.stop.addEventListener("click", () => actions.stop());
  }

  get text() {
    return this.#parts.text.value;
  }

  /** Puts the text in and the caret behind it; takes no focus. The same text moves no caret. */
  fill(text) {
    if (text === this.text) return;
    this.#parts.text.value = text;
    this.#parts.text.setSelectionRange(text.length, text.length);
    this.#fit();
    this.#arm();
  }

  focus() {
    this.#parts.text.focus();
  }

  /** mode: {running, connected, name, missing}. The button's word says what sending will do. */
  show(mode) {
    this.#mode = mode;
    const { text, send, stop, sendWord, sendIcon, queueIcon, keepIcon } = this.#parts;
    text.placeholder = `Message ${mode.name}`;
    text.disabled = mode.missing;
    stop.hidden = !mode.running;
    stop.disabled = !mode.connected;
    const word = !mode.connected ? "Keep for sending" : mode.running ? "Queue" : "Send";
    setText(sendWord, word);
    send.title = word;
    send.dataset.word = mode.connected && mode.running ? "shown" : "heard";
    sendIcon.toggleAttribute("hidden", word !== "Send");
    queueIcon.toggleAttribute("hidden", word !== "Queue");
    keepIcon.toggleAttribute("hidden", word !== "Keep for sending");
    this.#arm();
  }

  /** Under the field for a moment: what the last key did, or why a message was not taken. */
  hint(text, alarming = false) {
    const { hint } = this.#parts;
    hint.hidden = text === "";
    hint.textContent = text;
    hint.dataset.tone = alarming ? "danger" : "plain";
  }

  #submit() {
    const text = this.text.trim();
    if (text === "" || this.#parts.send.disabled) return;
    if (!this.#actions.send(text)) return;
    this.fill("");
    this.#actions.draft("");
  }

  #key(event) {
    const composing = event.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || event.altKey || composing) return;
    event.preventDefault();
    this.#submit();
  }

  #changed() {
    this.#fit();
    this.#arm();
    this.hint("");
    this.#actions.draft(this.text);
  }

  #arm() {
    this.#parts.send.disabled = this.text.trim() === "" || Boolean(this.#mode?.missing);
    this.#parts.form.classList.toggle("blank", this.text.trim() === "");
  }

  /** As tall as its text, up to a part of the page; upwards, for it is docked to the end. */
  #fit() {
    const { text } = this.#parts;
    const limit = Math.round(window.innerHeight * GROWS_TO);
    // Measuring a long text costs its whole layout, and it is taller than the limit anyway.
    text.style.blockSize = text.value.length > LONG ? `${limit}px` : "auto";
    if (text.value.length > LONG) return;
    text.style.blockSize = `${Math.min(text.scrollHeight, limit)}px`;
  }
}
