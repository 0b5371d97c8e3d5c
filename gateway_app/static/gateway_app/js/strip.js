// The strip under the head: there only while the connection is not well. And the account's dot.

import { setIcon, setText } from "./dom.js";
import { WORDS, waitingWords } from "./words.js";

/** What the strip says: {icon, strong, more, action: "now" | "reload" | null}; null: nothing. */
export function stripWords(state, { waiting, everReady, updated }) {
  if (updated) {
    return { icon: "refresh-cw", strong: WORDS.updated, more: WORDS.updatedMore, action: "reload" };
  }
  if (state.phase === "refused") {
    return { icon: "unplug", strong: state.sentence, more: "", action: "reload" };
  }
  if (state.draining) {
    return { icon: "refresh-cw", strong: WORDS.draining, more: WORDS.drainingMore, action: null };
  }
  if (state.phase === "ready" || state.phase === "login") return null;
  const more = waitingWords(waiting);
  if (!state.online) return { icon: "cloud-off", strong: WORDS.offline, more, action: "now" };
  if (!everReady && state.phase === "connecting") return null;
  return { icon: "unplug", strong: WORDS.reconnecting, more, action: "now" };
}

export class Strip {
  #parts;
  #action = null;

  /** `actions`: now(), reload(). */
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
    setText(stripAction, words.action === "reload" ? "Load again" : "Try now");
  }

  showAccount(state) {
    const { accountDot, accountState } = this.#parts;
    accountDot.dataset.state = state.phase === "ready" ? "ok" : "wait";
    const word = state.online ? "Reconnecting" : "Offline";
    setText(accountState, state.phase === "ready" ? WORDS.connected : word);
  }
}
