// What is known of a turn, from the events of its run or from a snapshot's `turns`.
// {turnId, state, verdict, reason, model, fallbackFrom, usage, ttftMs, durationMs, contextTokens,
// costUsd, error: {code, message}}

import { told } from "./sentences.js";

export function startTurn(turn, event) {
  return {
    ...turn,
    state: "running",
    retrying: false,
    error: undefined,
    startedAt: turn.startedAt ?? event.timestamp,
  };
}

export function finishTurn(turn, event) {
  const state = event.outcome?.type === "cancelled" ? "stopped" : "completed";
  return withFacts({ ...turn, state }, event);
}

/** A run that failed: the turn failed too, unless another run of it follows. */
export function failTurn(turn, event) {
  if (event.metadata?.hermes?.retrying) return { ...turn, state: "running", retrying: true };
  const message = told(event.message, event.metadata?.hermes?.sentences);
  const error = { code: event.code, message };
  return withFacts({ ...turn, state: "failed", error }, event);
}

function withFacts(turn, event) {
  const own = event.metadata?.hermes ?? {};
  return compact({
    ...turn,
    verdict: own.cache?.verdict ?? turn.verdict,
    reason: own.cache?.reason ?? turn.reason,
    revision: own.cache?.revision ?? turn.revision,
    model: own.model ?? turn.model,
    fallbackFrom: own.fallbackFrom ?? turn.fallbackFrom,
    usage: sumUsage(event.usage) ?? turn.usage,
    ttftMs: own.ttftMs ?? turn.ttftMs,
    durationMs: own.durationMs ?? elapsed(turn, event),
    contextTokens: own.contextTokens ?? turn.contextTokens,
    costUsd: own.costUsd ?? turn.costUsd,
  });
}

/** One answer may take several requests; a count that nobody told stays untold. */
function sumUsage(list) {
  if (!Array.isArray(list) || list.length === 0) return null;
  const total = (name) => {
    const known = list.map((usage) => usage[name]).filter((count) => typeof count === "number");
    return known.length ? known.reduce((sum, count) => sum + count, 0) : undefined;
  };
  return compact({
    inputTokens: total("inputTokens"),
    cachedInputTokens: total("cachedInputTokens"),
    outputTokens: total("outputTokens"),
  });
}

function elapsed(turn, event) {
  if (turn.durationMs !== undefined) return turn.durationMs;
  if (!turn.startedAt || !event.timestamp) return undefined;
  return event.timestamp - turn.startedAt;
}

function compact(fields) {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}
