// What the rows of a conversation say by themselves, in the page's language.

import { formatCount, formatDuration, percent } from "./format.js";
import { gettext, interpolate, ngettext } from "./i18n.js";

/** Who speaks, for those who go from heading to heading. */
export function speakerWords(time) {
  return time ? interpolate(gettext("You, %s"), [time]) : gettext("You");
}

export function assistantWords(time) {
  return time ? interpolate(gettext("Assistant, %s"), [time]) : gettext("Assistant");
}

export function personWords(name, time) {
  return interpolate(gettext("%(name)s, a person, %(time)s"), { name, time });
}

export function notSentWords(why) {
  return interpolate(gettext("Not sent. %s"), [why]);
}

export function sendsWords(place) {
  return interpolate(gettext("Sends %s when back"), [place]);
}

export function thoughtWords({ live, text, reasoningMs }) {
  if (live && !text) return gettext("Thinking");
  // unknown, or too short a time to be worth a figure
  if (!(reasoningMs >= 1000)) return gettext("Thought");
  return interpolate(gettext("Thought for %s"), [formatDuration(reasoningMs)]);
}

export function summaryWords(count) {
  if (count === null) return gettext("Earlier messages summarised for the agent");
  const words = ngettext(
    "%s earlier message summarised for the agent",
    "%s earlier messages summarised for the agent",
    count,
  );
  return interpolate(words, [count]);
}

/** What went in: "8.1k in", or "8.1k in, 96 % cached" if the provider told of its cache. */
export function inputWords(inputTokens, cachedInputTokens) {
  const count = formatCount(inputTokens);
  if (!Number.isFinite(cachedInputTokens) || inputTokens === 0) {
    return interpolate(gettext("%s in"), [count]);
  }
  const share = percent(cachedInputTokens, inputTokens);
  return interpolate(gettext("%(count)s in, %(share)s %% cached"), { count, share });
}

export function cachedWords(inputTokens, cachedInputTokens) {
  return interpolate(gettext("%s %% cached"), [percent(cachedInputTokens, inputTokens)]);
}

export function outputWords(outputTokens) {
  return interpolate(gettext("%s out"), [formatCount(outputTokens)]);
}

export function ribbonWords({ cached, fresh, output }) {
  const words = gettext("%(cached)s tokens from the cache, %(fresh)s new, %(output)s written");
  return interpolate(words, { cached, fresh, output });
}

export const DETAILS = Object.freeze({
  fresh: gettext("New input"),
  cached: gettext("From cache"),
  output: gettext("Output"),
  first: gettext("First word"),
  whole: gettext("Whole turn"),
  revision: gettext("Revision"),
});
