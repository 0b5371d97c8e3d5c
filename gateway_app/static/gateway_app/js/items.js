// What the thread shows, top to bottom, from a session's state and the messages not yet confirmed.
// Pure; every item has a key that never changes while the thing it stands for is the same.

import { messageKey } from "./store.js";

const CLOSED = new Set(["completed", "failed", "stopped", "interrupted"]);

export function threadItems(state, pending, connected = true) {
  const results = toolResults(state.messages);
  const shown = state.messages.filter(isShown);
  const lastOfTurn = new Map(shown.map((message) => [message.turnId, message.id]));
  const items = [];
  for (const message of shown) {
    items.push(messageItem(state, message, results));
    if (lastOfTurn.get(message.turnId) === message.id) items.push(...turnEnd(state, message));
  }
  items.push(...runItems(state, connected));
  for (const entry of pending) items.push(pendingItem(entry));
  return items;
}

function isShown(message) {
  if (message.state === "branched" || message.state === "hidden") return false;
  return message.kind !== "tool" && message.kind !== "session_meta" && message.kind !== "note";
}

function messageItem(state, message, results) {
  const base = { key: messageKey(state, message), id: message.id, createdAt: message.createdAt };
  if (message.state === "superseded") {
    return { ...base, type: "superseded", kind: message.kind, text: textOf(message) };
  }
  if (message.kind === "assistant") return { ...base, ...answer(message, results) };
  if (message.kind === "notice") {
    return { ...base, type: "notice", text: textOf(message), failed: failedTurn(state, message) };
  }
  const author = message.author ?? null;
  return { ...base, type: message.kind, pending: false, text: textOf(message), author };
}

function answer(message, results) {
  const calls = message.parts
    .filter((part) => part.type === "tool_call")
    .map((call) => ({ ...call, result: results.get(call.id) }));
  return {
    type: "answer",
    live: false,
    text: textOf(message),
    reasoning: textOf(message, "reasoning"),
    calls,
    finish: message.finish ?? null,
  };
}

/** The notice that closes a failed turn carries the turn's error and the way on. */
function failedTurn(state, message) {
  const turn = state.turns[message.turnId];
  if (turn?.state !== "failed" && turn?.state !== "interrupted") return null;
  return { turnId: turn.turnId, code: turn.error?.code ?? null };
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
  return [{ key: `f:${turn.turnId}`, type: "footer", turn, copy }];
}

/** A call that failed has no tokens to tell of, and its verdict says nothing to a person. */
function hasFacts(turn) {
  if (turn.state === "failed") return Boolean(turn.usage);
  return Boolean(turn.verdict || turn.usage || turn.durationMs);
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

function textOf(message, type = "text") {
  return message.parts
    .filter((part) => part.type === type)
    .map((part) => part.text)
    .join("\n\n");
}
