import assert from "node:assert/strict";
import { test } from "node:test";

import {
  applyEvent,
  applyHistory,
  applySnapshot,
  emptySession,
  isBehind,
  messageKey,
} from "../../gateway_app/static/gateway_app/js/store.js";
import { FINISHED, Log, SESSION, TURN, custom, message } from "./fakes.js";

const USER = message("u1", 1, { kind: "user", clientMessageId: "c1", parts: [{ type: "text", text: "Hi" }] });

/** A turn with reasoning, a tool step, an interrupted run and an answer, and one more queued. */
const STORY = [
  { type: "RUN_STARTED", threadId: SESSION, runId: `${TURN}.1` },
  custom("message", USER),
  custom("title", { title: "Hi" }),
  { type: "REASONING_START", messageId: "r1" },
  { type: "REASONING_MESSAGE_START", messageId: "r1", role: "reasoning" },
  { type: "REASONING_MESSAGE_CONTENT", messageId: "r1", delta: "Let me " },
  { type: "REASONING_MESSAGE_CONTENT", messageId: "r1", delta: "see." },
  { type: "REASONING_MESSAGE_END", messageId: "r1" },
  { type: "REASONING_END", messageId: "r1" },
  { type: "TOOL_CALL_START", toolCallId: "t1", toolCallName: "look", parentMessageId: "a1" },
  { type: "TOOL_CALL_ARGS", toolCallId: "t1", delta: '{"at":1}' },
  { type: "TOOL_CALL_END", toolCallId: "t1" },
  { type: "TOOL_CALL_RESULT", messageId: "x1", toolCallId: "t1", content: "seen", role: "tool" },
  custom("message", message("a1", 2, {
    parts: [
      { type: "reasoning", text: "Let me see." },
      { type: "tool_call", id: "t1", name: "look", arguments: '{"at":1}' },
    ],
  })),
  custom("message", message("x1", 3, {
    kind: "tool",
    parts: [{ type: "tool_result", callId: "t1", content: "seen" }],
  })),
  { type: "TEXT_MESSAGE_START", messageId: "a2", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "a2", delta: "Half" },
  { type: "TEXT_MESSAGE_END", messageId: "a2" },
  { type: "RUN_ERROR", code: "interrupted", message: "Again.", metadata: { hermes: { retrying: true } } },
  custom("message", message("s1", 4, { state: "superseded", parts: [{ type: "text", text: "Half" }] })),
  { type: "RUN_STARTED", threadId: SESSION, runId: `${TURN}.2` },
  { type: "TEXT_MESSAGE_START", messageId: "a3", role: "assistant" },
  { type: "TEXT_MESSAGE_CONTENT", messageId: "a3", delta: "Whole " },
  custom("queue", { queue: [{ turnId: "turn-2", place: 1, content: "Next", whenBusy: "queue" }] }),
  { type: "TEXT_MESSAGE_CONTENT", messageId: "a3", delta: "answer." },
  { type: "TEXT_MESSAGE_END", messageId: "a3" },
  custom("message", message("a3", 5, { parts: [{ type: "text", text: "Whole answer." }] })),
  custom("committed", { fromRevision: 0, revision: 5, ids: ["a3"] }),
  FINISHED,
];

/** What counts of a state: not how it is drawn, and not when its frames came. */
function essence(state) {
  const { keys, cursor, ...rest } = state;
  const turns = Object.values(rest.turns)
    .filter((turn) => turn.state !== "running")
    .map(({ startedAt, retrying, ...turn }) => turn);
  const steps = rest.run?.steps.map(({ key, ...step }) => step) ?? null;
  return { ...rest, revision: null, turns, run: steps };
}

function applied(state, frame) {
  const [next, outcome] = applyEvent(state, frame);
  assert.equal(outcome, "applied", JSON.stringify(frame));
  return next;
}

test("it knows after a snapshot and later events what a fresh snapshot says", () => {
  for (let cut = 0; cut <= STORY.length; cut++) {
    const log = new Log();
    STORY.slice(0, cut).forEach((event) => log.add(event));
    let state = applySnapshot(emptySession(SESSION), log.snapshot());
    for (const event of STORY.slice(cut)) {
      state = applied(state, log.add(event));
      const fresh = applySnapshot(emptySession(SESSION), log.snapshot());
      assert.deepEqual(essence(state), essence(fresh), `cut ${cut}, at ${event.type}`);
    }
    assert.equal(state.run, null);
    assert.equal(state.turns[TURN].state, "completed");
  }
});

test("it shows no text twice: a stored row, or an attempt given up, is no longer in the making", () => {
  const log = new Log();
  let state = applySnapshot(emptySession(SESSION), log.snapshot());
  const made = {};
  for (const event of STORY) {
    state = applied(state, log.add(event));
    if (event.name === "hermes.message") {
      made[event.value.id] = state.run.steps.length;
      assert.equal(applySnapshot(state, log.snapshot()).run.steps.length, state.run.steps.length);
    }
  }
  assert.deepEqual(made, { u1: 0, a1: 0, x1: 0, s1: 0, a3: 0 });
});

test("it drops what it knows and notices what is missing", () => {
  const log = new Log();
  let state = applySnapshot(emptySession(SESSION), log.snapshot());
  const frames = STORY.slice(0, 4).map((event) => log.add(event));
  state = applied(state, frames[0]);
  assert.deepEqual(applyEvent(state, frames[0]), [state, "old"]);
  assert.deepEqual(applyEvent(state, frames[2]), [state, "gap"]);
  state = applied(state, frames[1]);
  assert.equal(state.seq, frames[1].seq);
});

test("it takes a folded event as the next one, and reads again when it holds part of it", () => {
  const log = new Log();
  const state = applySnapshot(emptySession(SESSION), log.snapshot());
  const start = log.add(STORY[0]);
  const opened = applied(state, start);
  const folded = {
    ...log.add({ type: "TEXT_MESSAGE_START", messageId: "a9" }),
    seq: start.seq + 5,
    prev: start.seq,
  };
  assert.equal(applied(opened, folded).seq, start.seq + 5);
  const inside = { ...opened, seq: start.seq + 2 };
  assert.equal(applyEvent(inside, folded)[1], "reread");
});

test("it reads again when the past was rewritten", () => {
  const log = new Log();
  const state = applySnapshot(emptySession(SESSION), log.snapshot());
  const frame = log.add(custom("rewritten", { fromPosition: 1, revision: 9 }), undefined);
  assert.equal(applyEvent(state, frame)[1], "reread");
});

test("it draws an answer under one key from its first thought to its stored row and after a reload of state", () => {
  const log = new Log();
  let state = applySnapshot(emptySession(SESSION), log.snapshot());
  const events = [
    STORY[0],
    { type: "REASONING_START", messageId: "r7" },
    { type: "REASONING_MESSAGE_CONTENT", messageId: "r7", delta: "Hm." },
    { type: "TEXT_MESSAGE_START", messageId: "a7" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "a7", delta: "Yes." },
  ];
  const keys = new Set();
  for (const event of events) {
    state = applied(state, log.add(event));
    state.run.steps.forEach((step) => keys.add(step.key));
  }
  state = applySnapshot(state, log.snapshot());
  state.run.steps.forEach((step) => keys.add(step.key));
  const row = message("a7", 2);
  state = applied(state, log.add(custom("message", row)));
  keys.add(messageKey(state, row));
  state = applySnapshot(state, log.snapshot());
  keys.add(messageKey(state, row));
  assert.equal(keys.size, 1);
});

test("it draws the person's message under its own id for it, before and after", () => {
  assert.equal(messageKey(emptySession(SESSION), USER), "c:c1");
});

test("it puts older rows before the known ones and keeps what it knows better", () => {
  const log = new Log();
  log.add(custom("message", message("b", 20)));
  let state = applySnapshot(emptySession(SESSION), { ...log.snapshot(), hasMore: true, before: "x" });
  const stale = message("b", 20, { parts: [] });
  state = applyHistory(state, {
    messages: [message("a", 10), stale],
    turns: [{ turnId: "turn-0", state: "completed" }],
    before: null,
    hasMore: false,
  });
  assert.deepEqual(state.messages.map((row) => row.id), ["a", "b"]);
  assert.equal(state.messages[1].parts.length, 1);
  assert.equal(state.turns["turn-0"].state, "completed");
  assert.equal(state.hasMore, false);
});

test("it knows when a running turn began from a snapshot", () => {
  const startedAt = "2026-11-30T05:00:00.000Z";
  const running = { turnId: TURN, startedAt, events: [STORY[0]] };
  const frame = { session: {}, seq: 1, revision: 0, messages: [], turns: [], running };
  assert.equal(applySnapshot(emptySession(SESSION), frame).run.startedAt, Date.parse(startedAt));
});

test("it keeps older rows in sight through a new reading, until they are read again", () => {
  const log = new Log();
  const rows = [1, 2, 3].map((number) => message(`r${number}`, number));
  const known = { ...emptySession(SESSION), messages: [...rows, message("gone", 4), message("r5", 5)] };
  const read = applySnapshot(known, {
    ...log.snapshot(),
    messages: [message("r5", 5, { revision: 9 })],
    hasMore: true,
    before: "cursor",
  });
  assert.deepEqual(read.messages.map(({ id }) => id), ["r1", "r2", "r3", "gone", "r5"]);
  assert.ok(isBehind(read));
  const page = [message("r3", 3, { state: "branched" })];
  const further = applyHistory(read, { messages: page, turns: [], hasMore: true, before: "next" });
  assert.deepEqual(further.messages.map(({ id, state }) => `${id} ${state}`), [
    "r1 active", "r2 active", "r3 branched", "r5 active",
  ]);
  assert.ok(isBehind(further));
  const last = { messages: rows.slice(0, 1), turns: [], hasMore: false };
  const whole = applyHistory(further, last);
  assert.deepEqual(whole.messages.map(({ id }) => id), ["r1", "r3", "r5"]);
  assert.ok(!isBehind(whole));
});

test("it knows a live answer as one more branch beside those that it replaces", () => {
  const log = new Log();
  const old = { parentId: "u1", state: "branched" };
  const start = {
    ...emptySession(SESSION),
    seq: log.seq,
    messages: [USER, message("a1", 2, { ...old, turnId: "t1" }), message("a2", 3, { ...old, turnId: "t2" })],
  };
  const came = message("a3", 4, { parentId: "u1", turnId: "t3" });
  const next = applied(start, log.add(custom("message", came), "t3"));
  assert.deepEqual(next.messages.at(-1).branches, ["a2", "a3"]);
  start.messages[2].branches = ["a1", "a2"];
  const told = applied(start, log.frames[0]);
  assert.deepEqual(told.messages.at(-1).branches, ["a1", "a2", "a3"]);
  const second = message("b", 5, { parentId: "a3", turnId: "t3" });
  assert.equal(applied(told, log.add(custom("message", second), "t3")).messages.at(-1).branches, undefined);
});
