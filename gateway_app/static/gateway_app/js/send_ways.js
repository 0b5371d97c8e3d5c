// What sending does: its word on the button, and the ways while an answer runs.

import { gettext } from "./i18n.js";

const WORDS = Object.freeze({
  send: gettext("Send"),
  queue: gettext("Queue"),
  keep: gettext("Keep for sending"),
  save: gettext("Save"),
});

export function sendWord(kind) {
  return WORDS[kind];
}

const WAYS = Object.freeze([
  {
    way: "queue",
    icon: "list-plus",
    label: gettext("Queue"),
    detail: gettext("Goes out when the answer is finished"),
  },
  {
    way: "steer",
    icon: "corner-down-right",
    label: gettext("Steer"),
    detail: gettext("Is read by the running answer after its next step"),
  },
  {
    way: "interrupt",
    icon: "zap",
    label: gettext("Send now"),
    detail: gettext("Stops the answer; what it wrote is kept"),
  },
]);

/** The ways of this client that the server offers, in the menu's order. */
export function offeredWays(whenBusy) {
  return WAYS.map(({ way }) => way).filter((way) => whenBusy.includes(way));
}

/** The menu behind Queue. `choose(way)` sends in that way. */
export function waysMenu(ways, choose) {
  return WAYS.filter(({ way }) => ways.includes(way)).map(({ way, ...entry }) => ({
    ...entry,
    run: () => choose(way),
  }));
}
