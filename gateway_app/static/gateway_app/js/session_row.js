// One conversation in the list: its title, its one mark, the button of its menu, and the title as
// a field.

import { clone, setIcon, setText } from "./dom.js";
import { fullTime } from "./format.js";
import { gettext, interpolate } from "./i18n.js";
import { sessionMark } from "./session_list.js";
import { WORDS } from "./words.js";

const MARKS = {
  running: { word: gettext("running") },
  failed: { icon: "triangle-alert", word: gettext("failed") },
  unread: { word: gettext("unread") },
};

export class SessionRow {
  #parts;
  #actions;
  #session = null;

  constructor(actions) {
    const { element, parts } = clone("t-session");
    this.element = element;
    this.#parts = parts;
    this.#actions = actions;
    parts.link.addEventListener("click", (event) => this.#open(event));
    parts.link.addEventListener("contextmenu", (event) => this.#longPress(event));
    parts.more.addEventListener("click", () => actions.menu(parts.more, this.#session));
    element.addEventListener("rename", () => this.#edit());
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#save()) parts.link.focus();
    });
    parts.field.addEventListener("keydown", (event) => this.#key(event));
    parts.field.addEventListener("blur", () => this.#save());
  }

  update({ session, current }) {
    const { link, title, more, markIcon, markWord } = this.#parts;
    this.#session = session;
    const name = session.title || WORDS.untitled;
    const mark = sessionMark(session, current);
    this.element.dataset.session = session.id;
    this.element.dataset.mark = mark;
    this.element.classList.toggle("unread", session.unread && !current);
    link.href = `/c/${session.id}/`;
    link.title = fullTime(session.updatedAt);
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    setText(title, name);
    more.setAttribute("aria-label", interpolate(gettext("More for %s"), [name]));
    const known = MARKS[mark];
    markIcon.toggleAttribute("hidden", !known?.icon);
    if (known?.icon) setIcon(markIcon, known.icon);
    setText(markWord, known?.word ?? "");
  }

  /** A plain click stays in this page; with a key it is the browser's own link. */
  #open(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    this.#actions.open(this.#session.id);
  }

  #longPress(event) {
    if (event.pointerType === "mouse") return;
    event.preventDefault();
    this.#actions.menu(this.#parts.more, this.#session);
  }

  #edit() {
    this.#parts.field.value = this.#session.title;
    this.#parts.form.hidden = false;
    this.#parts.row.hidden = true;
    this.#parts.field.select();
    this.#parts.field.focus();
  }

  #close() {
    this.#parts.form.hidden = true;
    this.#parts.row.hidden = false;
  }

  /** True if the field was open; it is not any more. */
  #save() {
    if (this.#parts.form.hidden) return false;
    const title = this.#parts.field.value.trim();
    this.#close();
    if (title !== "" && title !== this.#session.title) {
      this.#actions.rename(this.#session.id, title);
    }
    return true;
  }

  #key(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.#close();
    this.#parts.link.focus();
  }
}
