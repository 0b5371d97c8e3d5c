// The list of conversations on the page: dated groups, the current one, what runs, what failed.

import { KeyedList, clone, setIcon, setText } from "./dom.js";
import { fullTime } from "./format.js";
import { grouped } from "./session_list.js";
import { WORDS } from "./words.js";

const MARKS = {
  running: { icon: "ring", word: "running" },
  failed: { icon: "triangle-alert", word: "failed" },
};

export class Sidebar {
  #parts;
  #list;

  /** `actions`: open(sessionId), menu(button, session), rename(sessionId, title), loadMore(). */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#list = new KeyedList(parts.groups, (group) => new Group(group, actions));
    parts.moreSessions.addEventListener("click", () => actions.loadMore());
  }

  /** `marks(sessionId)` is running, failed or idle. */
  show({ sessions, loaded, current, marks, hasMore }) {
    const groups = grouped(sessions, new Date()).map((group) => ({
      ...group,
      type: "group",
      key: group.name,
      sessions: group.sessions.map((session) => ({
        type: "session",
        key: session.id,
        session,
        current: session.id === current,
        mark: marks(session.id),
      })),
    }));
    this.#list.update(groups);
    this.#parts.emptyList.hidden = !loaded || sessions.length > 0;
    this.#parts.moreSessions.hidden = !hasMore;
  }

  /** Turns the session's row into a field for its title. */
  startRename(sessionId) {
    const row = this.#parts.groups.querySelector(`[data-session="${CSS.escape(sessionId)}"]`);
    row?.dispatchEvent(new CustomEvent("rename"));
  }
}

class Group {
  #list;

  constructor(group, actions) {
    const { element, parts } = clone("t-group");
    this.element = element;
    setText(parts.name, group.name);
    this.#list = new KeyedList(parts.sessions, () => new Row(actions));
  }

  update(group) {
    this.#list.update(group.sessions);
  }
}

class Row {
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
      this.#save();
    });
    parts.field.addEventListener("keydown", (event) => this.#key(event));
    parts.field.addEventListener("blur", () => this.#save());
  }

  update({ session, current, mark }) {
    const { link, title, more, markIcon, markWord } = this.#parts;
    this.#session = session;
    const name = session.title || WORDS.untitled;
    this.element.dataset.session = session.id;
    link.href = `/c/${session.id}/`;
    link.title = fullTime(session.updatedAt);
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    setText(title, name);
    more.setAttribute("aria-label", `More for ${name}`);
    this.element.dataset.mark = mark;
    const known = MARKS[mark];
    markIcon.toggleAttribute("hidden", known === undefined || known.icon === "ring");
    if (known && known.icon !== "ring") setIcon(markIcon, known.icon);
    setText(markWord, known ? `, ${known.word}` : "");
  }

  /** A plain click stays in this page; with a key it is the browser's own link. */
  #open(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    this.#actions.open(this.#session.id);
  }

  #longPress(event) {
    if (event.pointerType !== "touch") return;
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

  #save() {
    if (this.#parts.form.hidden) return;
    const title = this.#parts.field.value.trim();
    this.#close();
    if (title !== "" && title !== this.#session.title) {
      this.#actions.rename(this.#session.id, title);
    }
  }

  #key(event) {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    this.#close();
    this.#parts.link.focus();
  }
}
