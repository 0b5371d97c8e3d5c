// How a tool call stands, in one line. Pure.

import { formatDuration } from "./format.js";
import { gettext } from "./i18n.js";

const SHORT = 40;
const SENTENCE = /^.*?[.!?](?=\s|$)/;

export const CALL_ICONS = Object.freeze({
  done: "check",
  failed: "triangle-alert",
  unknown: "triangle-alert",
});

/** Of a call with this result, undefined while there is none: running, done, failed or unknown. */
export function callState(result) {
  if (result === undefined) return "running";
  if (result.error === "unknown") return "unknown";
  return result.error ? "failed" : "done";
}

/** A short result stands for itself, of a long one the time it took; what failed says why. */
export function callWords(state, text, durationMs) {
  if (state === "unknown") return gettext("It may have run. It was not run again.");
  const line = text.split("\n", 1)[0];
  if (state === "failed") return SENTENCE.exec(line)?.[0] || line || gettext("Failed");
  if (text && text.length <= SHORT && line === text) return text;
  return Number.isFinite(durationMs) ? formatDuration(durationMs) : gettext("Done");
}
