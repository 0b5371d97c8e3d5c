// What the palette offers for what is typed. Pure.

import { gettext, interpolate } from "./i18n.js";
import { dayName, newestFirst } from "./session_list.js";
import { WORDS } from "./words.js";

const SHOWN = 8;

/**
 * [{name, entries}]. `found` are sessions the server found (null: not yet), `sessions` those at
 * hand; `commands` are {icon, label, keys?, href?, run()}; `open(id)`, `find(text)`, `ask(text)`.
 */
export function paletteGroups({ typed, sessions, found, commands, canFind, now }, does) {
  const only = typed.startsWith(">");
  const text = (only ? typed.slice(1) : typed).trim();
  const groups = [];
  if (!only) {
    const listed = conversations(text, sessions, found).slice(0, SHOWN);
    groups.push({
      name: gettext("Conversations"),
      entries: listed.map((session) => conversation(session, now, does)),
    });
    if (text !== "" && canFind) groups.push(inThis(text, does));
  }
  const asking = only || text === "" ? [] : [newAsking(text, does)];
  const fitting = commands.filter(({ label }) => holds(label, text));
  groups.push({ name: gettext("Commands"), entries: [...asking, ...fitting] });
  return groups.filter(({ entries }) => entries.length > 0);
}

/** [before, match, after] of a title; the match is empty where the text is not in it. */
export function around(title, text) {
  const at = text === "" ? -1 : lower(title).indexOf(lower(text));
  if (at < 0 || lower(title).length !== title.length) return [title, "", ""];
  return [title.slice(0, at), title.slice(at, at + text.length), title.slice(at + text.length)];
}

function conversations(text, sessions, found) {
  if (text === "") return newestFirst(sessions);
  return found ?? newestFirst(sessions.filter((session) => holds(session.title, text)));
}

function conversation(session, now, does) {
  return {
    icon: session.archived ? "archive" : "message-square",
    label: session.title || WORDS.untitled,
    detail: session.archived ? gettext("Archived") : "",
    end: dayName(session.updatedAt, now),
    href: `/c/${session.id}/`,
    run: () => does.open(session.id),
  };
}

function inThis(text, does) {
  const label = interpolate(gettext("Find “%s” here"), [text]);
  const entry = { icon: "text-search", label, keys: "Ctrl Shift F", run: () => does.find(text) };
  return { name: gettext("In this conversation"), entries: [entry] };
}

function newAsking(text, does) {
  const label = interpolate(gettext("New chat asking “%s”"), [text]);
  return { icon: "square-pen", label, run: () => does.ask(text) };
}

function holds(label, text) {
  return lower(label).includes(lower(text));
}

function lower(text) {
  return text.toLocaleLowerCase();
}
