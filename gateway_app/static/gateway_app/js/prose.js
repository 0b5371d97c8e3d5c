// An answer's Markdown on the page. While it grows, finished blocks keep their nodes.

import { BlockStream } from "./blocks.js";
import { CodeBlock } from "./code_block.js";
import { DiagramBlock } from "./diagram_block.js";
import { make } from "./dom.js";
import { markdown } from "./markdown.js";
import { markup } from "./markup.js";
import { PiecesBlock } from "./pieces_block.js";
import { RowsBlock } from "./rows_block.js";

const COSTLY_MS = 8;
const REST = 4;

export class Prose {
  #stream = new BlockStream(markdown);
  #drawn = [];
  #text = null;
  #live = null;
  #restsUntil = 0;
  #timer = null;
  element = make("div", "prose");

  /**
   * Shows the text. A last block so long that drawing it again costs a noticeable time is drawn
   * less often, so that most of the time is left to whoever types; what is complete is drawn at once.
   */
  update(text, live) {
    if (text === this.#text && live === this.#live) return;
    this.#text = text;
    this.#live = live;
    if (live && this.#timer !== null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    const rest = live ? this.#restsUntil - performance.now() : 0;
    if (rest > 0) this.#timer = setTimeout(() => this.#wake(), rest);
    else this.#show();
  }

  #wake() {
    this.#timer = null;
    this.#show();
  }

  #show() {
    const began = performance.now();
    this.#draw(this.#live ? this.#stream.update(this.#text) : this.#stream.settle(this.#text));
    const ended = performance.now();
    this.#restsUntil = ended - began > COSTLY_MS ? ended + REST * (ended - began) : 0;
  }

  #draw(blocks) {
    while (this.#drawn.length > blocks.length) this.#erase(this.#drawn.pop());
    blocks.forEach((block, at) => {
      const drawn = this.#drawn[at];
      if (drawn?.block === block) return;
      const View = viewOf(block);
      if (View !== null && drawn?.view instanceof View && drawn.view.update(block)) {
        drawn.block = block;
      } else this.#replace(at, block);
    });
  }

  #replace(at, block) {
    const fresh = draw(block);
    const next = this.#drawn[at + 1]?.nodes[0] ?? null;
    if (this.#drawn[at]) this.#erase(this.#drawn[at]);
    for (const node of fresh.nodes) this.element.insertBefore(node, next);
    this.#drawn[at] = fresh;
  }

  #erase({ nodes }) {
    for (const node of nodes) node.remove();
  }
}

/** What draws a block that grows in place; null for one that is drawn as a whole. */
function viewOf({ code, language, pieces, growing }) {
  if (growing) return PiecesBlock;
  if (pieces !== undefined) return RowsBlock;
  if (code === undefined) return null;
  return language.toLowerCase() === "mermaid" ? DiagramBlock : CodeBlock;
}

function draw(block) {
  const View = viewOf(block);
  if (View === null) return { block, view: null, nodes: [...markup(block.html).children] };
  const view = new View();
  view.update(block);
  return { block, view, nodes: [view.element] };
}
