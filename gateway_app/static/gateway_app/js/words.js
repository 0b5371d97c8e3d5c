// Every sentence that the chat says by itself, in one place.

export const VERDICTS = Object.freeze({
  reuse: { icon: "flame", word: "Warm", tone: "warm" },
  catch_up: { icon: "list-plus", word: "Caught up", tone: "catch" },
  reload: { icon: "rotate-cw", word: "Loaded again", tone: "plain" },
  rebuild: { icon: "rotate-cw", word: "Rebuilt", tone: "rebuilt" },
});

const WHY = Object.freeze({
  reuse: "Nothing had changed, so the agent went on from where it was.",
  catch_up: "The conversation had grown by rows of others. The agent read only those; what it had sent before stayed as it was.",
  reload: "The agent was not in memory and was loaded from the database. What it sent before stayed as it was.",
  rebuild: "The conversation had changed, so the agent was built again and the old cache could not be used. The next turn is warm again.",
});

const REBUILT = Object.freeze({
  rewritten: "The history was edited, so the old cache could not be used. The next turn is warm again.",
  compacted: "Earlier messages were summarised, so the old cache could not be used. The next turn is warm again.",
  reconfigured: "The agent's settings changed, so the old cache could not be used. The next turn is warm again.",
});

export const REASONS = Object.freeze({
  rewritten: "history edited",
  compacted: "older messages summarised",
  reconfigured: "agent changed",
});

export function whyVerdict(verdict, reason) {
  if (verdict === "rebuild") return REBUILT[reason] ?? WHY.rebuild;
  return WHY[verdict] ?? "";
}

const FINISHED = Object.freeze({
  stopped: "Stopped here",
  interrupted: "Interrupted here",
  length: "Cut here: the answer reached its longest size",
  content_filter: "Cut here by the model provider's content filter",
});

export function finishWords(finish) {
  return FINISHED[finish] ?? "";
}

export const WORDS = Object.freeze({
  answering: "Assistant is answering",
  working: "Answering",
  away: "Text stops here. The answer goes on without you.",
  retrying: "The answer was interrupted. It is being tried again.",
  stopped: "Answer stopped",
  connected: "Connected",
  offline: "You are offline.",
  reconnecting: "Reconnecting.",
  back: "Connected again",
  draining: "This server restarts.",
  drainingMore: "The running answer is kept; you are connected again in a moment.",
  updated: "Hermes was updated.",
  updatedMore: "Load the page again to use the new version; your draft is kept.",
  failedFallback: "The answer failed. Your message is kept.",
  missing: "Not here",
  restored: "Conversation restored",
  untitled: "New conversation",
  escAgain: "Esc again to stop",
});

export function finishedWords(count) {
  return `Answer finished, ${count} ${count === 1 ? "word" : "words"}`;
}

export function waitingWords(count) {
  if (count === 0) return "The page catches up by itself.";
  if (count === 1) return "One message waits here and goes out when you are back.";
  return `${count} messages wait here and go out in order.`;
}

export function ordinal(number) {
  const tail = number % 100;
  if (tail >= 11 && tail <= 13) return `${number}th`;
  return `${number}${{ 1: "st", 2: "nd", 3: "rd" }[number % 10] ?? "th"}`;
}

export function tooLargeWords(size, limit) {
  return `This message is ${size}; the limit is ${limit}. It was not sent. Shorten it or send it in parts.`;
}

export function queueFullWords(count) {
  return `${count} messages already wait here. Remove one or let the agent finish.`;
}
