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
let waiting = [];
const drawn = new Map();

/** Draws every formula under `root` in place; at once if the library is there. */
export function drawMaths(root) {
  const places = [...root.querySelectorAll(".maths")];
  if (places.length === 0) return;
  for (const place of places) place.dir = "ltr";
  if (library !== null) return places.forEach(drawOne);
  waiting.push(...places);
  load();
}

/** Fetches the library, and draws what waits for it. What fails is tried again by the next one. */
async function load() {
  loading ??= Promise.all([import("../vendor/katex/katex.js"), loadStyles()]);
  try {
    await loading;
  } catch {
    loading = null;
    return;
  }
  library = globalThis.katex;
  waiting.splice(0).forEach(drawOne);
}

globalThis.addEventListener?.("reachable", () => waiting.length > 0 && load());

function loadStyles() {
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = asset("mathsStyles");
    link.onload = resolve;
    link.onerror = () => {
      link.remove();
      reject(new Error("The styles of formulas could not be fetched."));
    };
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
