// Every sentence that the chat says by itself, in one place, in the page's language.

import { gettext, interpolate, language, ngettext, pgettext } from "./i18n.js";

export const VERDICTS = Object.freeze({
  reuse: { icon: "flame", word: gettext("Warm"), tone: "warm" },
  catch_up: { icon: "list-plus", word: gettext("Caught up"), tone: "catch" },
  reload: { icon: "rotate-cw", word: gettext("Loaded again"), tone: "plain" },
  rebuild: { icon: "rotate-cw", word: gettext("Rebuilt"), tone: "rebuilt" },
});

const WHY = Object.freeze({
  reuse: gettext("Nothing had changed, so the agent went on from where it was."),
  catch_up: gettext("The conversation had grown by rows of others. The agent read only those; what it had sent before stayed as it was."),
  reload: gettext("The agent was not in memory and was loaded from the database. What it sent before stayed as it was."),
  rebuild: gettext("The conversation had changed, so the agent was built again and the old cache could not be used. The next turn is warm again."),
});

const REBUILT = Object.freeze({
  rewritten: gettext("The history was edited, so the old cache could not be used. The next turn is warm again."),
  compacted: gettext("Earlier messages were summarised, so the old cache could not be used. The next turn is warm again."),
  reconfigured: gettext("The agent's settings changed, so the old cache could not be used. The next turn is warm again."),
});

export const REASONS = Object.freeze({
  rewritten: gettext("history edited"),
  compacted: gettext("older messages summarised"),
  reconfigured: gettext("agent changed"),
});

export function whyVerdict(verdict, reason) {
  if (verdict === "rebuild") return REBUILT[reason] ?? WHY.rebuild;
  return WHY[verdict] ?? "";
}

const FINISHED = Object.freeze({
  stopped: gettext("Stopped here"),
  interrupted: gettext("Interrupted here"),
  length: gettext("Cut here: the answer reached its longest size"),
  content_filter: gettext("Cut here by the model provider's content filter"),
  refused: gettext("The model declined"),
});

export function finishWords(finish) {
  return FINISHED[finish] ?? "";
}

export const WORDS = Object.freeze({
  answering: gettext("Assistant is answering"),
  working: gettext("Answering"),
  away: gettext("Text stops here. The answer goes on without you."),
  retrying: gettext("The answer was interrupted. It is being tried again."),
  stopped: gettext("Answer stopped"),
  connected: gettext("Connected"),
  offline: gettext("You are offline."),
  reconnecting: gettext("Reconnecting."),
  back: gettext("Connected again"),
  draining: gettext("This server restarts; you are moved over."),
  notStoring: gettext("This server cannot store anything at present."),
  notStoringMore: gettext("Running answers are kept and go on when it can."),
  drainingMore: gettext("The running answer is kept."),
  backOnline: gettext("Back online."),
  loginOver: gettext("Your login has ended."),
  loginOverMore: gettext("What you wrote is kept here. Log in to go on."),
  refused: gettext("The server refused this connection. Load the page again to go on."),
  editing: gettext("Editing your message"),
  updated: gettext("Hermes was updated."),
  updatedMore: gettext("Load the page again to use the new version; your draft is kept."),
  failedFallback: gettext("The answer failed. Your message is kept."),
  missing: gettext("Not here"),
  restored: gettext("Conversation restored"),
  deleted: gettext("“%s” deleted"),
  archived: gettext("“%s” archived"),
  unarchived: gettext("“%s” is back in the list"),
  pinned: gettext("Pinned"),
  unpinned: gettext("Unpinned"),
  exported: gettext("Exported as %s"),
  linkCopied: gettext("Link copied"),
  answerCopied: gettext("Answer copied"),
  untitled: gettext("New conversation"),
  escAgain: gettext("Esc again to stop"),
});

export function finishedWords(count) {
  const words = ngettext("Answer finished, %s word", "Answer finished, %s words", count);
  return interpolate(words, [count]);
}

export function waitingWords(count) {
  if (count === 0) return gettext("The page catches up by itself.");
  const words = ngettext(
    "%s message waits here and goes out when you are back.",
    "%s messages wait here and go out in order.",
    count,
  );
  return interpolate(words, [count]);
}

export function sendingWords(count) {
  return interpolate(ngettext("Sending %s message.", "Sending %s messages.", count), [count]);
}

// A language needs its own of these only where its ordinals differ: German says "1." to all.
const ORDINALS = Object.freeze({
  one: pgettext("ordinal", "%sst"),
  two: pgettext("ordinal", "%snd"),
  few: pgettext("ordinal", "%srd"),
  other: pgettext("ordinal", "%sth"),
});
const ordinals = new Intl.PluralRules(language, { type: "ordinal" });

export function ordinal(number) {
  return interpolate(ORDINALS[ordinals.select(number)] ?? ORDINALS.other, [number]);
}

export function tooLargeWords(size, limit) {
  return interpolate(
    gettext(
      "This message is %(size)s; the limit is %(limit)s. Shorten it or send it in parts.",
    ),
    { size, limit },
  );
}

export function queueFullWords(count) {
  const words = gettext("%s messages already wait here. Remove one or let the agent finish.");
  return interpolate(words, [count]);
}
