// Keys as people read them, in their language and on their machine.

import { gettext, pgettext } from "./i18n.js";

const MAC = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");

const NAMES = Object.freeze({
  Ctrl: MAC ? "⌘" : pgettext("key", "Ctrl"),
  Alt: MAC ? "⌥" : pgettext("key", "Alt"),
  Shift: pgettext("key", "Shift"),
  Enter: pgettext("key", "Enter"),
  Esc: pgettext("key", "Esc"),
  Up: "↑",
  Down: "↓",
});

/** "Ctrl Shift O" as it stands on the keys. */
export function keyLabel(keys) {
  return keys
    .split(" ")
    .map((key) => NAMES[key] ?? key)
    .join(" ");
}

/** Every shortcut of the page: what it is called in `actions`, its keys, what it does. */
export const SHORTCUTS = Object.freeze([
  { name: "palette", keys: "Ctrl K", does: gettext("Search and commands") },
  { name: "newChat", keys: "Ctrl Shift O", does: gettext("New chat") },
  { name: "focusComposer", keys: "Shift Esc", does: gettext("Go to the message field") },
  { name: "find", keys: "Ctrl Shift F", does: gettext("Find in this conversation") },
  { name: "previousMessage", keys: "Alt Up", does: gettext("Previous message") },
  { name: "nextMessage", keys: "Alt Down", does: gettext("Next message") },
  { name: "copyAnswer", keys: "Ctrl Shift C", does: gettext("Copy the last answer") },
  { name: "theme", keys: "Ctrl Shift L", does: gettext("Light or dark theme") },
  { name: "shortcuts", keys: "Ctrl /", does: gettext("Keyboard shortcuts") },
]);

/** Does the event press these keys? Letters count by what they print, else by where they are. */
export function pressed(event, keys) {
  const held = keys.split(" ");
  const key = held.pop();
  const wants = (name) => held.includes(name);
  const command = event.ctrlKey || event.metaKey;
  if (command !== wants("Ctrl") || event.altKey !== wants("Alt")) return false;
  // where "/" is printed above a digit it takes Shift to press it
  if (key === "/") return event.key === "/";
  if (event.shiftKey !== wants("Shift")) return false;
  const named = { Esc: "Escape", Up: "ArrowUp", Down: "ArrowDown" }[key];
  if (named) return event.key === named;
  const printed = event.key.toLowerCase();
  return /^[a-z]$/.test(printed) ? printed === key.toLowerCase() : event.code === `Key${key}`;
}
