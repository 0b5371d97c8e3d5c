// The list of conversations: order, dated groups, marks. Pure.

import { daysAgo } from "./format.js";
import { gettext, language } from "./i18n.js";

/** [{name, pinned, sessions}] in the order of the list: newest first, each in the group of its day. */
export function grouped(sessions, now) {
  const groups = [];
  for (const session of newestFirst(sessions)) {
    const name = groupName(session, now);
    if (groups.at(-1)?.name !== name) groups.push({ name, pinned: session.pinned, sessions: [] });
    groups.at(-1).sessions.push(session);
  }
  return groups;
}

/** The list with `session` in it, once; the newer row of the two wins. */
export function withSession(sessions, session) {
  return [...sessions.filter((known) => known.id !== session.id), session];
}

export function withoutSession(sessions, sessionId) {
  return sessions.filter((session) => session.id !== sessionId);
}

/** A fresh first page: it replaces what it covers; older pages that were loaded stay. */
export function withFirstPage(sessions, page, complete) {
  if (complete || page.length === 0) return [...page];
  const oldest = page.at(-1).updatedAt;
  const listed = new Set(page.map((session) => session.id));
  const older = sessions.filter(
    (session) => session.updatedAt < oldest && !listed.has(session.id) && !session.pinned,
  );
  return [...page, ...older];
}

/** The one mark of a row: running, failed, unread or idle. What is open is not unread. */
export function sessionMark(session, current = false) {
  if (session.running) return "running";
  if (session.failed) return "failed";
  return session.unread && !current ? "unread" : "idle";
}

/** As the list shows them; those that are pinned before all others. */
export function newestFirst(sessions) {
  return [...sessions].sort(
    (one, other) =>
      Number(other.pinned) - Number(one.pinned) ||
      Date.parse(other.updatedAt) - Date.parse(one.updatedAt) ||
      (one.id < other.id ? 1 : -1),
  );
}

function groupName(session, now) {
  if (session.pinned) return gettext("Pinned");
  return dayName(session.updatedAt, now);
}

/** Today, Yesterday, Last 7 days, or the month. */
export function dayName(iso, now) {
  const days = daysAgo(iso, now);
  if (days <= 0) return gettext("Today");
  if (days === 1) return gettext("Yesterday");
  if (days <= 7) return gettext("Last 7 days");
  return new Date(iso).toLocaleDateString(language, { month: "long", year: "numeric" });
}
