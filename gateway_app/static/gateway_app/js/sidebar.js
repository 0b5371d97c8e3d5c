// The list of conversations on the page: dated groups, pages on the way down, the archive.

import { KeyedList, clone, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { loadInSight } from "./more.js";
import { grouped } from "./session_list.js";
import { SessionRow } from "./session_row.js";

const EMPTY = gettext(
  "Nothing here yet. Your conversations will be listed by day, and you can pin the ones you come back to.",
);
const NONE_ARCHIVED = gettext(
  "Nothing is archived. What you archive leaves the list and stays here, whole.",
);

export class Sidebar {
  #parts;
  #list;
  #shown = [];

  /** `actions`: open(sessionId), menu(button, session), rename(sessionId, title), loadMore(),
   *  showArchived(bool). */
  constructor(parts, actions) {
    this.#parts = parts;
    this.#list = new KeyedList(parts.groups, (group) => new Group(group, actions));
    parts.toArchive.addEventListener("click", () => {
      actions.showArchived(true);
      parts.fromArchive.focus();
    });
    parts.fromArchive.addEventListener("click", () => {
      actions.showArchived(false);
      parts.toArchive.focus();
    });
    loadInSight(parts.moreSessions, () => actions.loadMore(), {
      root: parts.sideList,
      rootMargin: "0px 0px 240px 0px",
    });
  }

  /** The same list on the same day is drawn once, however often the conversation is. */
  show(list) {
    const shown = [...Object.values(list), new Date().toDateString()];
    if (shown.every((one, at) => one === this.#shown[at])) return;
    this.#shown = shown;
    this.#draw(list);
  }

  #draw({ sessions, archived, hasArchived, loaded, current, hasMore }) {
    const groups = grouped(sessions, new Date()).map((group) => ({
      ...group,
      type: "group",
      key: group.name,
      sessions: group.sessions.map((session) => ({
        type: "session",
        key: session.id,
        session,
        current: session.id === current,
      })),
    }));
    const { archiveHead, toArchive, emptyList, moreSessions } = this.#parts;
    archiveHead.hidden = !archived;
    toArchive.hidden = archived || !hasArchived;
    this.#list.update(groups);
    emptyList.hidden = !loaded || sessions.length > 0;
    setText(emptyList, archived ? NONE_ARCHIVED : EMPTY);
    moreSessions.hidden = !hasMore;
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
    parts.pin.toggleAttribute("hidden", !group.pinned);
    this.#list = new KeyedList(parts.sessions, () => new SessionRow(actions));
  }

  update(group) {
    this.#list.update(group.sessions);
  }
}
