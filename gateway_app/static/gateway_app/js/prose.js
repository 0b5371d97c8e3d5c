// An answer's Markdown on the page. While it grows, finished blocks keep their nodes.

import { BlockStream } from "./blocks.js";
import { CodeBlock } from "./code_block.js";
import { DiagramBlock } from "./diagram_block.js";
import { icon, make } from "./dom.js";
import { gettext } from "./i18n.js";
import { markdown } from "./markdown.js";
import { drawMaths } from "./maths.js";
import { sanitise } from "./sanitise.js";

const DIRECTED = "p, ul, ol, li, h3, h4, h5, h6, blockquote, table";

export class Prose {
  #stream = new BlockStream(markdown);
  #drawn = [];
  #text = null;
  #live = null;
  element = make("div", "prose");

  update(text, live) {
    if (text === this.#text && live === this.#live) return;
    this.#text = text;
    this.#live = live;
    this.#draw(live ? this.#stream.update(text) : this.#stream.settle(text));
  }

  #draw(blocks) {
    while (this.#drawn.length > blocks.length) this.#erase(this.#drawn.pop());
    blocks.forEach((block, at) => {
      const drawn = this.#drawn[at];
      if (drawn?.block === block) return;
      const View = viewOf(block);
      if (View !== null && drawn?.code instanceof View) {
        drawn.code.update(block);
        drawn.block = block;
        return;
      }
      this.#replace(at, block);
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

/** What draws a fence; null for a block that is no fence. */
function viewOf({ code, language }) {
  if (code === undefined) return null;
  return language.toLowerCase() === "mermaid" ? DiagramBlock : CodeBlock;
}

function draw(block) {
  const View = viewOf(block);
  if (View !== null) {
    const code = new View();
    code.update(block);
    return { block, code, nodes: [code.element] };
  }
  const fragment = sanitise(block.html);
  for (const element of fragment.querySelectorAll(DIRECTED)) element.dir = "auto";
  for (const cell of fragment.querySelectorAll("th, td")) isolate(cell);
  for (const table of fragment.querySelectorAll("table")) box(table, gettext("Table"));
  for (const pre of fragment.querySelectorAll("pre")) box(pre, gettext("Code")).dir = "ltr";
  for (const code of fragment.querySelectorAll("code")) code.dir = "ltr";
  for (const link of fragment.querySelectorAll(".image-link")) link.prepend(icon("image", true));
  drawMaths(fragment);
  return { block, code: null, nodes: [...fragment.children] };
}

/** A cell's words have a direction of their own; its side is the table's. */
function isolate(cell) {
  const words = make("bdi");
  words.append(...cell.childNodes);
  cell.append(words);
}

/** What may be wider than the page scrolls inside a box of its own, by keyboard too. */
function box(element, name) {
  const scroller = make("div", "scroller");
  scroller.tabIndex = 0;
  scroller.setAttribute("role", "region");
  scroller.setAttribute("aria-label", name);
  element.replaceWith(scroller);
  scroller.append(element);
  return scroller;
}
