// An answer's HTML as nodes for the page: sanitised, each part with its own direction, what is wide
// in a box that scrolls.

import { icon, make } from "./dom.js";
import { gettext } from "./i18n.js";
import { drawMaths } from "./maths.js";
import { sanitise } from "./sanitise.js";

const DIRECTED = "p, ul, ol, li, h3, h4, h5, h6, blockquote, table";

export function markup(html) {
  const fragment = sanitise(html);
  // The inner ones first: for each, the browser reads on to the first letter that has no direction yet.
  for (const element of [...fragment.querySelectorAll(DIRECTED)].reverse()) element.dir = "auto";
  for (const cell of fragment.querySelectorAll("th, td")) isolate(cell);
  for (const table of fragment.querySelectorAll("table")) box(table, gettext("Table"));
  for (const pre of fragment.querySelectorAll("pre")) box(pre, gettext("Code")).dir = "ltr";
  for (const code of fragment.querySelectorAll("code")) code.dir = "ltr";
  for (const link of fragment.querySelectorAll(".image-link")) link.prepend(icon("image", true));
  drawMaths(fragment);
  return fragment;
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
