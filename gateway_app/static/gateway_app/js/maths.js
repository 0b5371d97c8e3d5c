// Draws formulas. The library and its styles are fetched by the first one; until then, and where a
// formula is not one, its source stands there. What is drawn never goes through HTML text.

import { asset } from "./assets.js";

const KEPT = 300;
const SETTINGS = Object.freeze({
  trust: false,
  strict: "ignore",
  throwOnError: true,
  maxSize: 20,
  maxExpand: 500,
});

let loading = null;
let library = null;
const drawn = new Map();

/** Draws every formula under `root` in place; at once if the library is there. */
export function drawMaths(root) {
  const places = [...root.querySelectorAll(".maths")];
  if (places.length === 0) return;
  for (const place of places) place.dir = "ltr";
  if (library !== null) places.forEach(drawOne);
  else load().then(() => library && places.forEach(drawOne));
}

function load() {
  loading ??= Promise.all([import("../vendor/katex/katex.js"), loadStyles()]).then(
    () => (library = globalThis.katex),
    () => (loading = null),
  );
  return loading;
}

function loadStyles() {
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = asset("mathsStyles");
    link.onload = resolve;
    link.onerror = reject;
    document.head.append(link);
  });
}

function drawOne(place) {
  const nodes = nodesOf(place.textContent, place.classList.contains("display"));
  if (nodes !== null) place.replaceChildren(nodes.cloneNode(true));
}

/** The formula's nodes, kept: a growing paragraph is drawn many times. Null: it is not one. */
function nodesOf(written, displayMode) {
  const key = `${displayMode}|${written}`;
  if (!drawn.has(key)) {
    if (drawn.size >= KEPT) drawn.delete(drawn.keys().next().value);
    const marks = /^(?:\$\$|\$|\\.)/.exec(written)[0].length;
    drawn.set(key, render(written.slice(marks, -marks), displayMode));
  }
  return drawn.get(key);
}

function render(source, displayMode) {
  const place = document.createElement("span");
  try {
    library.render(source, place, { ...SETTINGS, displayMode });
  } catch {
    return null;
  }
  const fragment = document.createDocumentFragment();
  fragment.append(...place.childNodes);
  return fragment;
}
