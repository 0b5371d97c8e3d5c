import assert from "node:assert/strict";
import { test } from "node:test";

import { threadItems } from "../../gateway_app/static/gateway_app/js/items.js";
import { emptySession } from "../../gateway_app/static/gateway_app/js/store.js";
import { SESSION, TURN, message } from "./fakes.js";

const USER = message("u1", 1, { kind: "user", clientMessageId: "c1" });
const DONE = { turnId: TURN, state: "completed", verdict: "reuse", durationMs: 900 };

function items(fields, pending = []) {
  return threadItems({ ...emptySession(SESSION), loaded: true, ...fields }, pending);
}

const types = (list) => list.map((item) => item.type);

test("it shows a turn's facts once, under its last row", () => {
  const messages = [USER, message("a1", 2), message("a2", 3)];
  const list = items({ messages, turns: { [TURN]: DONE } });
  assert.deepEqual(types(list), ["user", "answer", "answer", "footer"]);
  assert.equal(list[3].copy, "Text of a1\n\nText of a2");
});

test("it shows no facts of a turn that was tried again, and none that are not known", () => {
  assert.deepEqual(types(items({ messages: [USER], turns: { [TURN]: DONE } })), ["user"]);
  const bare = { turnId: TURN, state: "completed" };
  assert.deepEqual(
    types(items({ messages: [USER, message("a1", 2)], turns: { [TURN]: bare } })),
    ["user", "answer"],
  );
});

test("it hides what is staff's and what stands on another branch", () => {
  const messages = [
    message("n", 1, { kind: "note" }),
    message("m", 2, { kind: "session_meta" }),
    message("h", 3, { state: "hidden" }),
    message("b", 4, { state: "branched" }),
    message("t", 5, { kind: "tool", parts: [] }),
    message("c", 6, { state: "compacted" }),
  ];
  assert.deepEqual(items({ messages }).map((item) => item.id), ["c"]);
});

test("it folds a superseded attempt", () => {
  const messages = [USER, message("s1", 2, { state: "superseded" }), message("a1", 3)];
  const list = items({ messages });
  assert.deepEqual(types(list), ["user", "superseded", "answer"]);
  assert.equal(list[1].text, "Text of s1");
});

test("it joins a tool's result to its call", () => {
  const call = { type: "tool_call", id: "t1", name: "look", arguments: "{}" };
  const result = { type: "tool_result", callId: "t1", content: "seen" };
  const messages = [
    message("a1", 1, { parts: [call] }),
    message("x1", 2, { kind: "tool", parts: [result] }),
  ];
  const [answer] = items({ messages });
  assert.deepEqual(answer.calls, [{ ...call, result }]);
});

test("it makes the notice of a failed turn an error with the turn to try again", () => {
  const notice = message("n1", 2, { kind: "notice", parts: [{ type: "text", text: "Silence." }] });
  const failed = { turnId: TURN, state: "failed", error: { code: "model_timeout", message: "x" } };
  const [, shown] = items({ messages: [USER, notice], turns: { [TURN]: failed } });
  assert.deepEqual([shown.type, shown.text, shown.failed], [
    "notice", "Silence.", { turnId: TURN, code: "model_timeout", retryable: true, another: false },
  ]);
  const stopped = { turnId: TURN, state: "stopped" };
  assert.equal(items({ messages: [USER, notice], turns: { [TURN]: stopped } })[1].failed, null);
});

test("it shows the answer in the making, then that it is being made, then what was sent after", () => {
  const step = { key: "m:a1", messageId: "a1", reasoning: "", text: "So far", calls: [] };
  const run = { turnId: TURN, runId: "r", steps: [step], startedAt: null };
  const pending = { clientMessageId: "c9", content: "More", failed: null, createdAt: "2026-01-01" };
  const list = items({ messages: [USER], run }, [pending]);
  assert.deepEqual(types(list), ["user", "answer", "working", "user"]);
  assert.deepEqual([list[1].live, list[1].text, list[3].pending], [true, "So far", true]);
  assert.equal(list[3].key, "c:c9");
});

test("it gives every item a key of its own", () => {
  const messages = [USER, message("a1", 2), message("s1", 3, { state: "superseded" })];
  const keys = items({ messages, turns: { [TURN]: DONE } }).map((item) => item.key);
  assert.equal(new Set(keys).size, keys.length);
});

test("it offers another model where one is there and may help", () => {
  const notice = message("n1", 2, { kind: "notice" });
  const offered = (code, others) => {
    const turns = { [TURN]: { turnId: TURN, state: "failed", error: { code, message: "x" } } };
    const state = { ...emptySession(SESSION), loaded: true, messages: [USER, notice], turns };
    return threadItems(state, [], true, others)[1].failed.another;
  };
  assert.equal(offered("model_timeout", true), true);
  assert.equal(offered("model_timeout", false), false);
  assert.equal(offered("context_full", true), true);
  assert.equal(offered("storage", true), false);
});

test("it lets only the newest failure be tried again, for that would take away what followed", () => {
  const notice = message("n1", 2, { kind: "notice" });
  const turns = { [TURN]: { turnId: TURN, state: "failed", error: { code: "model_auth" } } };
  const state = { ...emptySession(SESSION), loaded: true, messages: [USER, notice], turns };
  const failed = (of) => threadItems(of, [], true, true)[1].failed;
  assert.deepEqual([failed(state).retryable, failed(state).another], [true, true]);
  const next = message("u2", 3, { kind: "user", turnId: "other" });
  const gone_on = { ...state, messages: [...state.messages, next] };
  assert.deepEqual([failed(gone_on).retryable, failed(gone_on).another], [false, false]);
  assert.equal(failed(state).retryable, true);
});

test("it shows of a failed call no facts but the tokens it took", () => {
  const messages = [USER, message("n1", 2, { kind: "notice" })];
  const failed = { turnId: TURN, state: "failed", verdict: "reuse", durationMs: 13 };
  assert.deepEqual(types(items({ messages, turns: { [TURN]: failed } })), ["user", "notice"]);
  const paid = { ...failed, usage: { inputTokens: 5 } };
  assert.deepEqual(types(items({ messages, turns: { [TURN]: paid } })), ["user", "notice", "footer"]);
});

test("it gives the same objects while nothing about them changed", () => {
  const state = { messages: [USER, message("a1", 2)], turns: { [TURN]: DONE }, keys: {} };
  const first = items(state);
  const grown = items({ ...state, messages: [...state.messages, message("a2", 3, { turnId: "other" })] });
  assert.equal(grown[0], first[0]);
  assert.equal(grown[1], first[1]);
  const again = items({ ...state, turns: { [TURN]: { ...DONE, durationMs: 5 } } });
  assert.equal(again[1], first[1]);
  assert.notEqual(again[2], first[2]);
  const joined = items({ ...state, keys: { a1: "r:1" } });
  assert.equal(joined[1].key, "r:1");
});

test("it offers another answer only for the newest turn, and not while one runs", () => {
  const other = { turnId: "turn-0", state: "completed", verdict: "new", durationMs: 1 };
  const messages = [message("a0", 1, { turnId: "turn-0" }), USER, message("a1", 3)];
  const turns = { [TURN]: DONE, "turn-0": other };
  const footers = (fields) => items({ messages, turns, ...fields }).filter((item) => item.type === "footer");
  assert.deepEqual(footers({}).map((item) => item.retryable), [false, true]);
  const run = { turnId: "turn-2", steps: [], startedAt: null };
  assert.deepEqual(footers({ run }).map((item) => item.retryable), [false, false]);
});

test("it counts what a summary stands for once all of it is here", () => {
  const messages = [
    message("c1", 1, { state: "compacted" }),
    message("c2", 2, { state: "compacted" }),
    message("s", 2, { kind: "summary" }),
    message("a", 3),
  ];
  const counts = (fields) => items({ messages, ...fields }).filter((item) => item.type === "summary");
  assert.equal(counts({})[0].count, 2);
  assert.equal(counts({ hasMore: true })[0].count, null);
});

test("it tells how long the model thought only if that is known", () => {
  const thought = (part) => items({ messages: [message("a", 1, { parts: [{ type: "reasoning", text: "Hm", ...part }] })] })[0];
  assert.equal(thought({ durationMs: 4100 }).reasoningMs, 4100);
  assert.equal(thought({}).reasoningMs, null);
});

test("it lets a person edit what they wrote, and nothing else", () => {
  const other = message("u2", 3, { kind: "user", author: { id: 2, name: "Ben" } });
  const messages = [{ ...USER, author: { id: 1, name: "Ann" } }, message("a1", 2), other];
  const shown = (me) =>
    threadItems({ ...emptySession(SESSION), loaded: true, messages }, [], true, false, me)
      .filter((item) => item.editable)
      .map((item) => item.id);
  assert.deepEqual(shown(1), ["u1"]);
  assert.deepEqual(shown(null), []);
});

test("it shows the way to other versions under a message, and under the end of an answer", () => {
  const user = { ...USER, parentId: "x", branches: ["u0", "u1"] };
  const rows = [
    user,
    message("a1", 2, { parentId: "u1", branches: ["a0", "a1", "a2"] }),
    message("a9", 3, { parentId: "a1" }),
  ];
  const shown = items({ messages: rows, turns: { [TURN]: DONE } });
  assert.deepEqual(types(shown), ["user", "branches", "answer", "answer", "footer", "branches"]);
  const [own, answers] = shown.filter(({ type }) => type === "branches");
  assert.deepEqual([own.own, own.at, own.ids.length, own.busy], [true, 1, 2, false]);
  assert.deepEqual([answers.own, answers.at, answers.ids.length], [false, 1, 3]);
  const other = { ...rows[1], id: "a2" };
  const next = items({ messages: [user, other], turns: { [TURN]: DONE } });
  assert.equal(next.at(-1).key, answers.key);
  assert.equal(next[1], own);
  const running = items({ messages: rows, run: { turnId: "t9", steps: [] } });
  assert.ok(running.filter(({ type }) => type === "branches").every(({ busy }) => busy));
});
