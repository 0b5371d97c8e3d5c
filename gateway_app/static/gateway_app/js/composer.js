// The field where the person writes: Enter sends, Shift+Enter breaks the line, and an input method
// that is composing keeps its Enter. The draft is kept with every change.

import { setText } from "./dom.js";
import { gettext, interpolate } from "./i18n.js";
import { sendWord } from "./send_ways.js";

const GROWS_TO = 0.4;
const LONG = 20_000;
/** The browser fits the field by itself, without a layout of the page for each key. */
const FITS_ITSELF = CSS.supports("field-sizing", "content");
const WITH_WORD = new Set(["queue", "save"]);

export class Composer {
  #parts;
  #actions;
  #mode = null;
  #problem = "";
  #told = false;

  /**
   * `actions`: send(text, whenBusy) -> true if taken; stop(); draft(text); editLast();
   * cancelEdit(); openWays(button); problemOf(text) -> why it cannot be sent, or "";
   * refuse(reason) says so;
   * enterSends() -> bool.
   */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#actions = actions;
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    parts.text.addEventListener("keydown", (event) => this.#key(event));
    parts.text.addEventListener("input", () => this.#changed());
    parts.stop.addEventListener("click", () => actions.stop());
    parts.ways.addEventListener("click", () => actions.openWays(parts.ways));
    parts.editCancel.addEventListener("click", () => actions.cancelEdit());
    if (!FITS_ITSELF) new ResizeObserver(() => this.#fit()).observe(parts.form);
  }

  get text() {
    return this.#parts.text.value;
  }

  /** Puts the text in and the caret behind it; takes no focus. The same text moves no caret. */
  fill(text) {
    if (text === this.text) return;
    this.#parts.text.value = text;
    this.#parts.text.setSelectionRange(text.length, text.length);
    this.#measure();
  }

  focus() {
    this.#parts.text.focus();
  }

  /**
   * mode: {running, connected, name, missing, full (sentence, or ""), ways (list of policies),
   * editing (bool)}. The button's word says what sending will do.
   */
  show(mode) {
    this.#mode = mode;
    const { text, stop, ways, editing } = this.#parts;
    const placeholder = interpolate(gettext("Message %s"), [mode.name]);
    if (text.placeholder !== placeholder) text.placeholder = placeholder;
    text.disabled = mode.missing;
    editing.hidden = !mode.editing;
    stop.hidden = !(mode.running && mode.connected);
    ways.hidden = !(mode.running && mode.connected && !mode.editing && mode.ways.length > 1);
    this.#drawSend();
    this.#arm();
  }

  /** Under the field for a moment: what the last key did, or why a message was not taken. */
  hint(text, alarming = false) {
    const { hint } = this.#parts;
    hint.hidden = text === "";
    hint.textContent = text;
    hint.dataset.tone = alarming ? "danger" : "plain";
  }

  submit(whenBusy = null) {
    const text = this.text.trim();
    if (text === "" || this.#parts.send.disabled) return;
    if (!this.#actions.send(text, whenBusy)) return;
    this.fill("");
    this.#actions.draft("");
  }

  #drawSend() {
    const { send, sendWord: word, sendIcon, queueIcon, keepIcon, saveIcon } = this.#parts;
    const kind = this.#kind();
    setText(word, sendWord(kind));
    send.title = sendWord(kind);
    send.dataset.word = WITH_WORD.has(kind) ? "shown" : "heard";
    const icons = { send: sendIcon, queue: queueIcon, keep: keepIcon, save: saveIcon };
    for (const [name, icon] of Object.entries(icons)) icon.toggleAttribute("hidden", name !== kind);
  }

  #kind() {
    if (this.#mode.editing) return "save";
    if (!this.#mode.connected) return "keep";
    return this.#mode.running ? "queue" : "send";
  }

  #key(event) {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter") this.#enter(event);
    else if (event.key === "ArrowUp" && this.text === "" && !hasModifier(event)) {
      event.preventDefault();
      this.#actions.editLast();
    } else if (event.key === "Escape" && this.#mode?.editing && !hasModifier(event)) {
      event.preventDefault();
      this.#actions.cancelEdit();
    }
  }

  /** With Ctrl (or Cmd) it sends in any case, and while an answer runs, now. */
  #enter(event) {
    if (event.altKey) return;
    const command = event.ctrlKey || event.metaKey;
    if (!command && event.shiftKey === this.#actions.enterSends()) return;
    event.preventDefault();
    const now = command && this.#mode?.running && this.#mode.ways.includes("interrupt");
    this.submit(now ? "interrupt" : null);
  }

  #changed() {
    if (!this.#told) this.hint("");
    this.#measure();
    this.#actions.draft(this.text);
  }

  #measure() {
    this.#problem = this.#actions.problemOf(this.text);
    this.#fit();
    this.#arm();
  }

  #arm() {
    const blank = this.text.trim() === "";
    const reason = this.#problem || (blank ? "" : this.#mode?.full ?? "");
    const { send, ways, form } = this.#parts;
    send.disabled = ways.disabled = blank || reason !== "" || Boolean(this.#mode?.missing);
    form.classList.toggle("blank", blank);
    const { hint } = this.#parts;
    if (reason === "" && this.#told && hint.dataset.tone === "danger") this.hint("");
    else if (reason !== "" && reason !== hint.textContent) this.#actions.refuse(reason);
    this.#told = reason !== "";
  }

  /** As tall as its text, up to a part of the page; upwards, for it is docked to the end. */
  #fit() {
    const { text } = this.#parts;
    if (FITS_ITSELF) return;
    const limit = Math.round(window.innerHeight * GROWS_TO);
    // Measuring a long text costs its whole layout, and it is taller than the limit anyway.
    const long = text.value.length > LONG;
    text.style.blockSize = long ? `${limit}px` : "auto";
    const height = long ? Infinity : text.scrollHeight;
    // A height in whole pixels may lack the part of one, for which WebKit draws a scrollbar.
    text.style.overflowY = height > limit ? "auto" : "hidden";
    text.style.blockSize = `${Math.min(height, limit)}px`;
  }
}

function hasModifier(event) {
  return event.shiftKey || event.ctrlKey || event.altKey || event.metaKey;
}
