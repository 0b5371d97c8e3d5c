// One session as this client knows it. Pure: old state + frames = the state a fresh client gets.
//
// {sessionId, session, seq, revision, messages (in order), turns {turnId: turn}, run, queue,
//  hasMore, cursor, readFrom, keys {messageId: key}, loaded}
// Rows before the position `readFrom` are of an earlier reading, and stay until they are read again.

import { applyRunEvent, keyOfStep, newRun } from "./run.js";
import { failTurn, finishTurn, startTurn } from "./turns.js";

const KEPT_ROWS = 500;

export function emptySession(sessionId, session = null) {
  return {
    sessionId,
    session,
    seq: null,
    revision: 0,
    messages: [],
    turns: {},
    run: null,
    queue: [],
    hasMore: false,
    cursor: null,
    readFrom: 0,
    keys: {},
    loaded: false,
  };
}

/** The snapshot's state. Keys of rows that were there before stay, so nothing is drawn anew. */
export function applySnapshot(state, frame) {
  const { running } = frame;
  const before = frame.hasMore ? rowsBefore(state, frame.messages) : [];
  return {
    ...state,
    session: frame.session,
    seq: frame.seq,
    revision: frame.revision,
    messages: inOrder([...before.slice(-KEPT_ROWS), ...frame.messages]),
    turns: byTurn(before.length > 0 ? state.turns : {}, frame.turns),
    run: running && runOf(running),
    queue: frame.queue ?? [],
    hasMore: frame.hasMore,
    cursor: frame.before ?? null,
    readFrom: before.length > 0 ? frame.messages[0].position : 0,
    loaded: true,
  };
}

/** The events of a snapshot came at times that nobody tells; when the turn began is told. */
function runOf({ turnId, startedAt, events }) {
  const run = events.reduce(applyRunEvent, newRun(turnId));
  return { ...run, startedAt: startedAt ? Date.parse(startedAt) : run.startedAt };
}

/**
 * [state, outcome]; `frame.at` is when it came, in ms. "applied": the event counts; "old": known already; "gap": something is missing,
 * subscribe with `after`; "reread": the past changed, subscribe without.
 */
export function applyEvent(state, frame) {
  if (state.seq === null || frame.prev > state.seq) return [state, "gap"];
  if (frame.seq <= state.seq) return [state, "old"];
  if (frame.prev < state.seq) return [state, "reread"];
  const event = { timestamp: frame.at, ...frame.event };
  const next = { ...reduce(state, frame.turnId, event), seq: frame.seq };
  return [next, isRewrite(event) ? "reread" : "applied"];
}

/** Older rows before those that were read; of these, a row stays as it is. */
export function applyHistory(state, result) {
  const read = state.messages.filter((message) => message.position >= state.readFrom);
  const known = new Set(read.map((message) => message.id));
  const older = result.messages.filter((message) => !known.has(message.id));
  const before = result.hasMore ? rowsBefore(state, older) : [];
  return {
    ...state,
    messages: inOrder([...before, ...older, ...read]),
    turns: { ...byTurn({}, result.turns), ...state.turns },
    hasMore: result.hasMore,
    cursor: result.before ?? null,
    readFrom: before.length > 0 ? older[0].position : 0,
  };
}

function rowsBefore(state, messages) {
  const first = messages[0]?.position ?? 0;
  return state.messages.filter((message) => message.position < first);
}

/** Some rows are of an earlier reading. */
export function isBehind(state) {
  return (state.messages[0]?.position ?? 0) < state.readFrom;
}

/** Without the rows of an earlier reading: they may be of another branch, or gone. */
export function withoutBehind(state) {
  const messages = state.messages.filter((message) => message.position >= state.readFrom);
  return { ...state, messages, readFrom: 0 };
}

export function applyQueue(state, queue) {
  return { ...state, queue };
}

export function applySessionRow(state, session) {
  return { ...state, session: { ...state.session, ...session } };
}

/** How a row is drawn under: its author's id for it, else its own; the same before and after. */
export function messageKey(state, message) {
  if (message.kind === "user" && message.clientMessageId) return `c:${message.clientMessageId}`;
  return state.keys[message.id] ?? `m:${message.id}`;
}

function isRewrite(event) {
  return event.type === "CUSTOM" && event.name === "hermes.rewritten";
}

function reduce(state, turnId, event) {
  switch (event.type) {
    case "RUN_STARTED":
      return {
        ...withTurn(state, turnId, (turn) => startTurn(turn, event)),
        run: applyRunEvent(newRun(turnId), event),
      };
    case "RUN_FINISHED":
      return { ...withTurn(state, turnId, (turn) => finishTurn(turn, event)), run: null };
    case "RUN_ERROR":
      return withTurn(afterError(state, event), turnId, (turn) => failTurn(turn, event));
    case "CUSTOM":
      return reduceCustom(state, event);
    default:
      return state.run === null ? state : { ...state, run: applyRunEvent(state.run, event) };
  }
}

/** While another run follows, what was read stays in sight until its row comes. */
function afterError(state, event) {
  return event.metadata?.hermes?.retrying ? state : { ...state, run: null };
}

function reduceCustom(state, event) {
  const { name, value } = event;
  switch (name) {
    case "hermes.message":
      return withMessage(state, event);
    case "hermes.queue":
      return applyQueue(state, value.queue);
    case "hermes.title":
      return applySessionRow(state, { title: value.title });
    case "hermes.committed":
      return { ...state, revision: value.revision };
    default:
      return state;
  }
}

/** The row takes the place of the step that became it, and its key: nothing is drawn anew. */
function withMessage(state, event) {
  const message = asBranch(state.messages, event.value);
  const next = { ...state, messages: withRow(state.messages, message) };
  if (state.run?.turnId !== message.turnId || message.kind !== "assistant") return next;
  const key = message.state === "active" ? keyOfStep(state.run, message) : null;
  const keys = key === null ? state.keys : { ...state.keys, [message.id]: key };
  return { ...next, run: applyRunEvent(state.run, event), keys };
}

/** A row of a new turn that hangs where another one hung: the newest of its branches. */
function asBranch(messages, message) {
  const { parentId, turnId } = message;
  if (!parentId || !turnId) return message;
  const other = messages.findLast(
    (known) => known.parentId === parentId && known.turnId && known.state === "branched",
  );
  if (other === undefined || other.turnId === turnId) return message;
  const branches = (other.branches ?? [other.id]).filter((id) => id !== message.id);
  return { ...message, branches: [...branches, message.id] };
}

function withTurn(state, turnId, change) {
  if (!turnId) return state;
  const turn = change(state.turns[turnId] ?? { turnId });
  return { ...state, turns: { ...state.turns, [turnId]: turn } };
}

function byTurn(turns, list) {
  return { ...turns, ...Object.fromEntries((list ?? []).map((turn) => [turn.turnId, turn])) };
}

/** In order; a row that comes at the end, as nearly all do, is put there without sorting. */
function withRow(messages, message) {
  const last = messages.at(-1);
  const isNew = !messages.some((known) => known.id === message.id);
  if (isNew && (last === undefined || last.position < message.position)) return [...messages, message];
  return inOrder([...messages.filter((known) => known.id !== message.id), message]);
}

function inOrder(messages) {
  return [...messages].sort(
    (one, other) => one.position - other.position || (one.id < other.id ? -1 : 1),
  );
}
