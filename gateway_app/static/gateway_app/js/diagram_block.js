// A diagram: its source as code until it is complete, then its picture with the source folded under
// it. One that cannot be drawn stays source.

import { CodeBlock } from "./code_block.js";
import { clone } from "./dom.js";
import { pictureOf } from "./diagrams.js";

export class DiagramBlock {
  #parts;
  #code = new CodeBlock();
  #source = null;
  #address = null;

  constructor() {
    const { element, parts } = clone("t-diagram");
    this.element = element;
    this.#parts = parts;
    element.append(this.#code.element);
    element.addEventListener("ground", () => this.#draw());
  }

  update(block) {
    this.#code.update(block);
    if (!block.closed || block.code === this.#source) return true;
    this.#source = block.code;
    this.#draw();
    return true;
  }

  async #draw() {
    const source = this.#source;
    if (source === null) return;
    const picture = await pictureOf(source);
    if (source !== this.#source) return;
    this.#parts.failed.hidden = picture !== null;
    if (picture !== null) this.#show(picture);
  }

  #show({ blob, width, height }) {
    const { picture, drawn, source } = this.#parts;
    if (this.#address !== null) URL.revokeObjectURL(this.#address);
    this.#address = URL.createObjectURL(blob);
    picture.src = this.#address;
    picture.width = Math.ceil(width);
    picture.height = Math.ceil(height);
    drawn.hidden = false;
    source.append(this.#code.element);
  }
}
