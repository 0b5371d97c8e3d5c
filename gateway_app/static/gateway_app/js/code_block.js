// A fenced block: its language, Wrap, Copy, and the code as plain text that grows in place.

import { clone, copyText, setText } from "./dom.js";

const COPIED_MS = 2000;

export class CodeBlock {
  #parts;
  #code = "";
  #node = document.createTextNode("");

  constructor() {
    const { element, parts } = clone("t-code");
    this.element = element;
    this.#parts = parts;
    parts.code.append(this.#node);
    parts.copy.addEventListener("click", () => this.#copy());
    parts.wrap.addEventListener("click", () => this.#wrap());
  }

  update({ code, language }) {
    setText(this.#parts.language, language || "Text");
    if (code.startsWith(this.#code)) this.#node.appendData(code.slice(this.#code.length));
    else this.#node.data = code;
    this.#code = code;
  }

  #wrap() {
    const wrapped = this.element.classList.toggle("wrapped");
    this.#parts.wrap.setAttribute("aria-pressed", String(wrapped));
  }

  async #copy() {
    await copyText(this.#code);
    setText(this.#parts.copied, "Copied");
    setTimeout(() => setText(this.#parts.copied, "Copy"), COPIED_MS);
  }
}
