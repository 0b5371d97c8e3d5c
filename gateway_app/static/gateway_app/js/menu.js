// One small menu, shown beside the button that opened it: arrows move, Esc closes, focus returns.

import { bdi, icon, make } from "./dom.js";

const GAP_PX = 4;

export class Menu {
  #element;
  #opener = null;
  #atStart = false;

  constructor(element) {
    this.#element = element;
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("toggle", (event) => {
      if (event.newState === "closed") this.#closed();
    });
  }

  /** `entries`: {label, icon, run, danger?, checked?, detail?}, or {heading}. It ends where its opener ends. */
  open(opener, entries, { atStart = false } = {}) {
    this.#opener = opener;
    this.#atStart = atStart;
    this.#element.replaceChildren(...entries.map((entry) => this.#entry(entry)));
    // A modal dialog makes the rest of the page inert: the menu has to be inside it.
    (opener.closest("dialog") ?? document.body).append(this.#element);
    this.#element.showPopover();
    this.#place();
    opener.setAttribute("aria-expanded", "true");
    (this.#element.querySelector("[aria-checked=true]") ?? this.#buttons()[0])?.focus();
  }

  #buttons() {
    return [...this.#element.querySelectorAll("button")];
  }

  #entry({ heading, label, icon: name, run, danger, checked, detail }) {
    if (heading) return make("p", "menu-heading", heading);
    const button = make("button", "menu-entry");
    button.type = "button";
    const radio = checked !== undefined;
    button.setAttribute("role", radio ? "menuitemradio" : "menuitem");
    if (radio) button.setAttribute("aria-checked", String(checked));
    button.tabIndex = -1;
    if (danger) button.dataset.tone = "danger";
    const words = make("span", "menu-words");
    words.append(bdi(label));
    if (detail) words.append(make("span", "menu-detail", detail));
    button.append(icon(name), words);
    if (checked) button.append(icon("check", true));
    button.addEventListener("click", () => {
      const opener = this.#opener;
      this.#element.hidePopover();
      opener?.focus();
      run();
    });
    return button;
  }

  #place() {
    const at = this.#opener.getBoundingClientRect();
    const box = this.#element.getBoundingClientRect();
    const below = at.bottom + GAP_PX + box.height <= window.innerHeight;
    const top = below ? at.bottom + GAP_PX : Math.max(GAP_PX, at.top - box.height - GAP_PX);
    const rtl = document.documentElement.dir === "rtl";
    const [first, end] = rtl
      ? [window.innerWidth - at.right, window.innerWidth - at.left]
      : [at.left, at.right];
    const last = window.innerWidth - box.width - GAP_PX;
    const wanted = this.#atStart ? first : end - box.width;
    const start = Math.max(GAP_PX, Math.min(wanted, last));
    this.#element.style.insetBlockStart = `${top}px`;
    this.#element.style.insetInlineStart = `${start}px`;
  }

  #key(event) {
    const entries = this.#buttons();
    const at = entries.indexOf(document.activeElement);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      entries.at(moves[event.key] % entries.length).focus();
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      const opener = this.#opener;
      this.#element.hidePopover();
      opener?.focus();
    } else if (event.key === "Tab") {
      this.#element.hidePopover();
    }
  }

  #closed() {
    this.#opener?.setAttribute("aria-expanded", "false");
    this.#opener = null;
  }
}
