// The strip under the head: there only while the connection is not well. And the account's dot.

import { setIcon, setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { WORDS, sendingWords, waitingWords } from "./words.js";

const ACTIONS = Object.freeze({
  now: gettext("Try now"),
  reload: gettext("Load again"),
  login: gettext("Log in"),
});

/**
 * What the strip says: {icon, strong, more, action: "now" | "reload" | "login" | null}; null:
 * nothing. `lost`: the connection was lost, and what waited is still on its way.
 */
export function stripWords(state, { waiting, everReady, updated, lost }) {
  if (state.phase === "login") {
    return say("log-out", WORDS.loginOver, WORDS.loginOverMore, "login");
  }
  if (state.phase === "refused") return say("unplug", state.sentence, "", "reload");
  if (updated) return say("refresh-cw", WORDS.updated, WORDS.updatedMore, "reload");
  if (state.draining) return say("refresh-cw", WORDS.draining, WORDS.drainingMore);
  if (state.phase === "ready" && state.storing === false) {
    return say("unplug", WORDS.notStoring, WORDS.notStoringMore);
  }
  if (state.phase === "ready") {
    return lost && waiting > 0 ? say("refresh-cw", WORDS.backOnline, sendingWords(waiting)) : null;
  }
  if (!everReady && state.phase === "connecting") return null;
  if (!state.online) return say("cloud-off", WORDS.offline, waitingWords(waiting), "now");
  return say("unplug", WORDS.reconnecting, waitingWords(waiting), "now");
}

function say(icon, strong, more, action = null) {
  return { icon, strong, more, action };
}

export class Strip {
  #parts;
  #action = null;

  /** `actions`: now(), reload(), login(). */
  constructor(parts, actions) {
    this.#parts = parts;
    parts.stripAction.addEventListener("click", () => actions[this.#action]?.());
  }

  show(words) {
    const { strip, stripIcon, stripStrong, stripMore, stripAction } = this.#parts;
    strip.hidden = words === null;
    if (words === null) return;
    setIcon(stripIcon, words.icon);
    setText(stripStrong, words.strong);
    setText(stripMore, words.more);
    this.#action = words.action;
    stripAction.hidden = words.action === null;
    if (words.action !== null) setText(stripAction, ACTIONS[words.action]);
  }

  showAccount(state) {
    const { accountDot, accountState } = this.#parts;
    accountDot.dataset.state = state.phase === "ready" ? "ok" : "wait";
    setText(accountState, accountWord(state));
  }
}

function accountWord({ phase, online }) {
  if (phase === "ready") return WORDS.connected;
  if (phase === "login") return gettext("Logged out");
  return online ? gettext("Reconnecting") : gettext("Offline");
}
