// Find in this conversation: matches are painted over the text, the text itself stays untouched.

import { setText } from "./dom.js";
import { gettext, interpolate } from "./i18n.js";

const AGAIN_MS = 200;
const MOST = 2000;

export class Find {
  #parts;
  #actions;
  #ranges = [];
  #at = -1;
  #timer = null;
  #opener = null;
  #watch = new MutationObserver(() => this.#soon());

  /** `actions`: hasOlder() -> bool, loadOlder(), home(). */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#actions = actions;
    parts.find.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#step(1);
    });
    parts.findField.addEventListener("input", () => this.#look(0));
    parts.findPrevious.addEventListener("click", () => this.#step(-1));
    parts.findOlder.addEventListener("click", () => actions.loadOlder());
    parts.findClose.addEventListener("click", () => this.close());
    parts.find.addEventListener("keydown", (event) => this.#key(event));
  }

  open(text = null) {
    const { find, findField, items } = this.#parts;
    this.#opener = find.hidden ? document.activeElement : this.#opener;
    find.hidden = false;
    if (text !== null) findField.value = text;
    findField.focus();
    findField.select();
    this.#watch.observe(items, { childList: true, characterData: true, subtree: true });
    this.#look(0);
  }

  close() {
    if (this.#parts.find.hidden) return;
    clearTimeout(this.#timer);
    this.#watch.disconnect();
    this.#parts.find.hidden = true;
    CSS.highlights?.clear();
    const opener = this.#opener;
    if (opener?.isConnected && opener !== document.body) opener.focus();
    else this.#actions.home();
  }

  #key(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else if (event.key === "Enter" && event.shiftKey) {
      event.preventDefault();
      this.#step(-1);
    }
  }

  /** The text still comes, or older rows did: the same words are looked for again. */
  #soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(null), AGAIN_MS);
  }

  /** `at`: the match to go to; null: stay where we are. */
  #look(at) {
    const { findField, items } = this.#parts;
    this.#ranges = rangesOf(items, findField.value.trim().toLocaleLowerCase());
    this.#at = at ?? Math.min(this.#at, this.#ranges.length - 1);
    this.#show(at !== null);
  }

  #step(by) {
    const count = this.#ranges.length;
    if (count === 0) return;
    this.#at = (this.#at + by + count) % count;
    this.#show(true);
  }

  #show(go) {
    const { findField, findCount, findOlder } = this.#parts;
    const current = this.#ranges[this.#at] ?? null;
    if (globalThis.Highlight) {
      CSS.highlights.set("found", new Highlight(...this.#ranges));
      CSS.highlights.set("found-now", new Highlight(...(current ? [current] : [])));
    }
    const words = this.#ranges.length === 0 ? gettext("No match") : gettext("%s of %s");
    const text = interpolate(words, [this.#at + 1, this.#ranges.length]);
    setText(findCount, findField.value.trim() === "" ? "" : text);
    findOlder.hidden = !this.#actions.hasOlder();
    if (go && current) current.startContainer.parentElement.scrollIntoView({ block: "center" });
  }
}

/** Where the text stands, visible or folded away. A match lies within one run of text. */
function rangesOf(root, text) {
  const found = [];
  if (text === "") return found;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && found.length < MOST; node = walker.nextNode()) {
    if (node.parentElement.closest(".only-heard, button, [hidden]")) continue;
    const lower = node.data.toLocaleLowerCase();
    if (lower.length !== node.data.length) continue; // offsets would not fit
    for (let at = lower.indexOf(text); at >= 0; at = lower.indexOf(text, at + text.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + text.length);
      found.push(range);
    }
  }
  return found;
}
