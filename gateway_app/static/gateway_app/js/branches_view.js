// The versions of a message or of an answer: which one is shown, and the way to those beside it.

import { clone, setText } from "./dom.js";
import { gettext, interpolate } from "./i18n.js";

export class BranchesView {
  #parts;
  #item = null;
  #hold;

  /** `actions`: selectBranch(messageId, words). `hold(element)`: it stays where it stands. */
  constructor(actions, hold) {
    const { element, parts } = clone("t-branches");
    this.element = element;
    this.#parts = parts;
    this.#hold = hold;
    parts.previous.addEventListener("click", () => this.#go(-1, actions));
    parts.next.addEventListener("click", () => this.#go(1, actions));
  }

  update(item) {
    const { group, words, previous, next } = this.#parts;
    const switched = this.#item !== null && this.#item.at !== item.at;
    this.#item = item;
    if (switched && this.element.contains(document.activeElement)) this.#hold(this.element);
    this.element.dataset.of = item.own ? "message" : "answer";
    const label = item.own ? gettext("Versions of this message") : gettext("Versions of this answer");
    group.setAttribute("aria-label", label);
    setText(words, versionWords(item, item.at));
    // Marked, not disabled: a disabled button would lose the focus at the last version.
    previous.setAttribute("aria-disabled", String(!this.#reaches(-1)));
    next.setAttribute("aria-disabled", String(!this.#reaches(1)));
  }

  #reaches(by) {
    return !this.#item.busy && this.#item.ids[this.#item.at + by] !== undefined;
  }

  #go(by, actions) {
    if (!this.#reaches(by)) return;
    const { ids, at } = this.#item;
    const words = interpolate(gettext("Version %s"), [versionWords(this.#item, at + by)]);
    actions.selectBranch(ids[at + by], words);
  }
}

function versionWords({ ids }, at) {
  return interpolate(gettext("%s of %s"), [at + 1, ids.length]);
}
