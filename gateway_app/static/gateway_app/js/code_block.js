// A fenced block: its language, Wrap, Copy, and the code. It is plain text that grows in place until
// its fence is closed; then it is coloured, by itself or, if it is long, when somebody asks.

import { CodeText } from "./code_text.js";
import { clone, copyText, setIcon, setText } from "./dom.js";
import { AT_ONCE, runsOf } from "./highlighter.js";
import { gettext } from "./i18n.js";
import { grammarOf, nameOf } from "./languages.js";

const COPIED_MS = 2000;

export class CodeBlock {
  #parts;
  #text;
  #grammar = null;
  #coloured = null;

  constructor() {
    const { element, parts } = clone("t-code");
    this.element = element;
    this.#parts = parts;
    this.#text = new CodeText(parts.code);
    parts.copy.addEventListener("click", () => this.#copy());
    parts.wrap.addEventListener("click", () => this.#wrap());
    parts.colour.addEventListener("click", () => this.#colour());
  }

  update({ code, language, closed }) {
    setText(this.#parts.language, nameOf(language) || gettext("Text"));
    this.#text.update(code);
    this.#grammar = closed && code !== "" ? grammarOf(language) : null;
    const wanted = this.#grammar !== null && this.#coloured !== code;
    this.#parts.colour.hidden = !wanted || code.length <= AT_ONCE;
    if (wanted && code.length <= AT_ONCE) this.#colour();
    return true;
  }

  async #colour() {
    const { code } = this.#text;
    this.#parts.colour.hidden = true;
    this.#coloured = code;
    const runs = await runsOf(code, this.#grammar);
    if (this.#text.code !== code) return;
    if (runs === null) this.#grammar = null;
    else await this.#text.colour(runs);
  }

  #wrap() {
    const wrapped = this.element.classList.toggle("wrapped");
    this.#parts.wrap.setAttribute("aria-pressed", String(wrapped));
  }

  async #copy() {
    await copyText(this.#text.code);
    this.#show("check", gettext("Copied"));
    setTimeout(() => this.#show("copy", gettext("Copy")), COPIED_MS);
  }

  #show(icon, word) {
    setIcon(this.#parts.copyIcon, icon);
    setText(this.#parts.copied, word);
  }
}
