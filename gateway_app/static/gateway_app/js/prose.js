// An answer's Markdown on the page. While it grows, finished blocks keep their nodes. One that is
// complete and long is drawn in slices, with room for others between them.

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
const SLICE_MS = 30;
const ROWS = 100;

export class Prose {
  #stream = new BlockStream(markdown);
  #drawn = [];
  #text = null;
  #live = null;
  #restsUntil = 0;
  #timer = null;
  #slice = null;
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
    clearTimeout(this.#slice);
    while (this.#drawn.length > blocks.length) this.#erase(this.#drawn.pop());
    this.#go(this.#steps(blocks));
  }

  /** What grows is drawn at once, what is complete as far as its slice of time goes. */
  #go(steps) {
    const began = performance.now();
    while (!steps.next().done) {
      if (this.#live || performance.now() - began < SLICE_MS) continue;
      this.#slice = setTimeout(() => this.#go(steps));
      return;
    }
  }

  *#steps(blocks) {
    for (const [at, block] of blocks.entries()) {
      if (this.#drawn[at]?.block === block || this.#grow(at, block)) continue;
      const [first, ...others] = partsOf(block);
      this.#replace(at, first);
      yield;
      for (const part of others) {
        this.#grow(at, part);
        yield;
      }
    }
  }

  /** True if what draws the block that is there draws this one too. */
  #grow(at, block) {
    const drawn = this.#drawn[at];
    const View = viewOf(block);
    if (View === null || !(drawn?.view instanceof View) || !drawn.view.update(block)) return false;
    drawn.block = block;
    return true;
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

/** The block as it comes to stand there: a long list or table by so many rows more at a time. */
function partsOf(block) {
  const { pieces = [] } = block;
  const grown = [];
  for (let end = ROWS; end < pieces.length; end += ROWS) {
    grown.push({ ...block, pieces: pieces.slice(0, end) });
  }
  return [...grown, block];
}

function draw(block) {
  const View = viewOf(block);
  if (View === null) return { block, view: null, nodes: [...markup(block.html).children] };
  const view = new View();
  view.update(block);
  return { block, view, nodes: [view.element] };
}
