// What a screen reader is told: starts and ends politely, errors at once, never the text itself.

import { countWords } from "./format.js";
import { noticeText } from "./items.js";
import { WORDS, finishedWords } from "./words.js";

/**
 * {polite} or {alert} for the step from one state of a session to the next; null: nothing.
 * `before.expected` is a turn that was sent and of which no event was seen yet.
 */
export function announcement(before, after) {
  if (!after.loaded) return null;
  const known = before?.sessionId === after.sessionId ? before : null;
  const running = known?.run?.turnId ?? null;
  if (after.run !== null) return running === null ? { polite: WORDS.answering } : null;
  const turn = after.turns[running ?? known?.expected];
  return turn === undefined ? null : ending(after, turn);
}

function ending(state, turn) {
  if (turn.state === "failed") return { alert: failure(state, turn) };
  if (turn.state === "stopped") return { polite: WORDS.stopped };
  return { polite: finishedWords(answerWords(state, turn.turnId)) };
}

/** What the notice that closes the turn says, in the page's language. */
function failure(state, turn) {
  const ofTurn = ({ turnId, kind }) => turnId === turn.turnId && kind === "notice";
  const notice = state.messages.findLast(ofTurn);
  return (notice && noticeText(notice)) || turn.error?.message || WORDS.failedFallback;
}

function answerWords(state, turnId) {
  return state.messages
    .filter((message) => message.turnId === turnId && message.kind === "assistant")
    .filter((message) => message.state === "active")
    .flatMap((message) => message.parts)
    .filter((part) => part.type === "text")
    .reduce((count, part) => count + countWords(part.text), 0);
}

export class Announcer {
  #status;
  #alert;

  constructor({ status, alert }) {
    this.#status = status;
    this.#alert = alert;
  }

  tell(words) {
    if (words?.polite) this.#status.textContent = words.polite;
    if (!words?.alert) return;
    this.#status.textContent = ""; // what was begun is over
    this.#alert.textContent = words.alert;
  }
}
