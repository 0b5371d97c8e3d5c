// Draws diagrams in a frame that has an origin of its own and no network: the only place where
// styles in markup are allowed. Source goes in, a picture comes out, and nothing in it is alive.

import { asset } from "./assets.js";
import { coloursOf, isDark } from "./grounds.js";

const PATIENCE_MS = 15_000;
const LONGEST = 20_000;
const COLOURS = ["bg", "bubble", "inset", "side", "text", "text-3", "accent", "wait-soft", "line-strong"];

let frame = null;
let last = 0;
const waiting = new Map();

/** {blob, width, height} of the diagram on the ground of now; null if it cannot be drawn. */
export async function pictureOf(source) {
  if (source.length > LONGEST) return null;
  frame ??= open();
  const opened = frame;
  if (!(await opened.ready)) {
    giveUp(opened);
    return null;
  }
  last += 1;
  const id = last;
  const answer = new Promise((resolve) => waiting.set(id, resolve));
  const timer = setTimeout(giveUp, PATIENCE_MS, opened);
  // An opaque origin has no name to be addressed by; the frame's page is ours, at its address.
  opened.element.contentWindow.postMessage({ id, source, dark: isDark(), colours: coloursOf(COLOURS) }, "*");
  const found = await answer;
  clearTimeout(timer);
  return found && { ...found, blob: new Blob([found.svg], { type: "image/svg+xml" }) };
}

function open() {
  const element = document.createElement("iframe");
  element.setAttribute("sandbox", "allow-scripts");
  element.className = "drawing-frame";
  element.tabIndex = -1;
  element.ariaHidden = "true";
  element.src = asset("diagramFrame");
  const ready = new Promise((resolve) => {
    waiting.set("ready", resolve);
    setTimeout(resolve, PATIENCE_MS, false);
  });
  document.body.append(element);
  return { element, ready };
}

/** A diagram that takes too long: the frame goes, and what waits for it stays source. */
function giveUp(opened) {
  if (opened !== frame) return;
  frame = null;
  opened.element.remove();
  for (const resolve of waiting.values()) resolve(null);
  waiting.clear();
}

/** Diagrams that could not be drawn while the server was away are drawn now. */
window.addEventListener("reachable", () => {
  for (const failed of document.querySelectorAll(".diagram > .failed:not([hidden])")) {
    failed.parentElement.dispatchEvent(new Event("ground"));
  }
});

window.addEventListener("message", ({ source, data }) => {
  if (frame === null || source !== frame.element.contentWindow) return;
  waiting.get(data.id)?.(data.answer);
  waiting.delete(data.id);
});
