// What the thread shows, top to bottom, from a session's state and the messages not yet confirmed.
// Pure; every item has a key that never changes while the thing it stands for is the same, and is the
// same object as before while nothing about it changed: drawing costs only what is new.

import { told } from "./sentences.js";
import { messageKey } from "./store.js";

/** Failures that another model may not have. */
const OF_THE_MODEL = /^(model_|context_full$|limit$)/;
const CLOSED = new Set(["completed", "failed", "stopped", "interrupted"]);

/** What was made of a row, and of what: its parts are compared one by one. */
const made = new WeakMap();

let rows = { of: [], items: [] };

/** `others`: whether another model than the session's is offered. `me`: whose messages may be edited. */
export function threadItems(state, pending, connected = true, others = false, me = null) {
  const items = [...rowItems(state, others, me), ...runItems(state, connected)];
  for (const entry of pending) items.push(pendingItem(entry));
  return items;
}

/** The items of all rows; those of before while only the running answer grows. */
function rowItems(state, others, me) {
  const of = [state.messages, state.turns, state.keys, state.hasMore, state.run === null, others, me];
  if (of.every((one, at) => one === rows.of[at])) return rows.items;
  const results = toolResults(state.messages);
  const shown = state.messages.filter(isShown);
  const lastOfTurn = new Map(shown.map((message) => [message.turnId, message.id]));
  const forkOfTurn = new Map(shown.filter(isFork).map((message) => [message.turnId, message]));
  const items = [];
  for (const message of shown) {
    items.push(rowItem(state, message, results, { others, me }));
    if (message.kind === "user") items.push(...branchItem(state, message));
    if (lastOfTurn.get(message.turnId) !== message.id) continue;
    items.push(...turnEnd(state, message), ...branchItem(state, forkOfTurn.get(message.turnId)));
  }
  rows = { of, items };
  return items;
}

function isShown(message) {
  if (message.state === "branched" || message.state === "hidden") return false;
  return message.kind !== "tool" && message.kind !== "session_meta" && message.kind !== "note";
}

/** The row's item; the one of before if all that it is made of is the same. */
function rowItem(state, message, results, { others, me }) {
  const notice = message.kind === "notice";
  const turn = notice ? state.turns[message.turnId] : null;
  const newest = notice && isNewest(state, message);
  const of = [messageKey(state, message), turn, replaced(state, message), notice && others, me, newest];
  for (const call of callsOf(message)) of.push(results.get(call.id));
  return kept(message, of, () => messageItem(state, message, results, { others, me }));
}

/** Nothing follows it: what is tried again takes nothing away that was said after it. */
function isNewest(state, message) {
  return state.run === null && state.messages.findLast(isShown) === message;
}

function kept(key, of, make) {
  const known = made.get(key);
  if (known?.of.length === of.length && known.of.every((one, at) => one === of[at])) return known.item;
  const item = make();
  made.set(key, { of, item });
  return item;
}

function messageItem(state, message, results, { others, me }) {
  const base = { key: messageKey(state, message), id: message.id, createdAt: message.createdAt };
  if (message.state === "superseded") {
    return { ...base, type: "superseded", kind: message.kind, text: textOf(message) };
  }
  if (message.kind === "assistant") return { ...base, ...answer(message, results) };
  if (message.kind === "notice") {
    return { ...base, type: "notice", text: noticeText(message), failed: failedTurn(state, message, others) };
  }
  const author = message.author ?? null;
  const editable = message.kind === "user" && author !== null && author.id === me;
  const row = { ...base, type: message.kind, pending: false, text: textOf(message), author, editable };
  return message.kind === "summary" ? { ...row, count: replaced(state, message) } : row;
}

function answer(message, results) {
  const calls = callsOf(message).map((call) => ({ ...call, result: results.get(call.id) }));
  return {
    type: "answer",
    live: false,
    text: textOf(message),
    reasoning: textOf(message, "reasoning"),
    reasoningMs: reasoningTime(message),
    calls,
    finish: message.finish ?? null,
  };
}

function callsOf(message) {
  return message.parts.filter((part) => part.type === "tool_call");
}

/** How long the model thought; null if nobody told. */
function reasoningTime(message) {
  const times = message.parts.filter((part) => part.type === "reasoning").map((part) => part.durationMs);
  return times.length > 0 && times.every(Number.isFinite) ? times.reduce((sum, ms) => sum + ms, 0) : null;
}

/** How many messages a summary stands for; null while not all of them are here. */
function replaced(state, message) {
  if (message.kind !== "summary" || state.hasMore) return null;
  const before = state.messages.filter((one) => one.state === "compacted" && isShown(one));
  return before.filter((one) => one.position <= message.position).length || null;
}

/** The notice that closes a failed turn carries the turn's error, and the way on while it is the last. */
function failedTurn(state, message, others) {
  const turn = state.turns[message.turnId];
  if (message.kind !== "notice") return null;
  if (turn?.state !== "failed" && turn?.state !== "interrupted") return null;
  const code = turn.error?.code ?? null;
  const retryable = isNewest(state, message);
  const another = retryable && others && OF_THE_MODEL.test(code ?? "");
  return { turnId: turn.turnId, code, retryable, another };
}

/** Under the last row of a closed turn. A turn that was tried again shows no answer, and no facts. */
function turnEnd(state, last) {
  const turn = state.turns[last.turnId];
  if (turn === undefined || last.kind === "user" || !CLOSED.has(turn.state)) return [];
  if (!hasFacts(turn)) return [];
  const copy = state.messages
    .filter((message) => message.turnId === turn.turnId && message.kind === "assistant")
    .filter((message) => message.state === "active")
    .map((message) => textOf(message))
    .filter(Boolean)
    .join("\n\n");
  const newest = isNewest(state, last);
  const of = [last, copy, newest];
  return [
    kept(turn, of, () => ({ key: `f:${turn.turnId}`, type: "footer", turn, copy, retryable: newest })),
  ];
}

/** A call that failed has no tokens to tell of, and its verdict says nothing to a person. */
function hasFacts(turn) {
  if (turn.state === "failed") return Boolean(turn.usage);
  return Boolean(turn.verdict || turn.usage || turn.durationMs);
}

/** An answer, or the notice in its place, beside which there are others. */
function isFork(message) {
  return message.kind !== "user" && message.branches !== undefined;
}

/** The way to the other versions of a message or of an answer: the same place whichever is shown. */
function branchItem(state, message) {
  const ids = message?.branches;
  if (ids === undefined) return [];
  const busy = state.run !== null;
  const item = () => ({
    key: `${message.kind === "user" ? "u" : "a"}:${message.parentId ?? ""}`,
    type: "branches",
    own: message.kind === "user",
    ids,
    at: ids.indexOf(message.id),
    busy,
  });
  return [kept(ids, [message, busy], item)];
}

function runItems(state, connected) {
  const run = state.run;
  if (run === null) return [];
  const retrying = Boolean(state.turns[run.turnId]?.retrying);
  const items = run.steps.map((step) => ({
    ...step,
    type: "answer",
    live: true,
    finish: null,
    createdAt: null,
  }));
  const startedAt = state.turns[run.turnId]?.startedAt ?? run.startedAt;
  items.push({ key: `w:${run.turnId}`, type: "working", retrying, startedAt, connected });
  return items;
}

function pendingItem(entry) {
  return { ...entry, key: `c:${entry.clientMessageId}`, type: "user", pending: true };
}

function toolResults(messages) {
  const parts = messages.filter((message) => message.kind === "tool" && message.state === "active");
  return new Map(
    parts
      .flatMap((message) => message.parts)
      .filter((part) => part.type === "tool_result")
      .map((part) => [part.callId, part]),
  );
}

/** What a notice says, in the page's language. */
export function noticeText(message) {
  return message.parts
    .filter((part) => part.type === "text")
    .map((part) => told(part.text, part.sentences))
    .join("\n\n");
}

function textOf(message, type = "text") {
  return message.parts
    .filter((part) => part.type === type)
    .map((part) => part.text)
    .join("\n\n");
}
