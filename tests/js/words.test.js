import assert from "node:assert/strict";
import { test } from "node:test";

import { announcement } from "../../gateway_app/static/gateway_app/js/announcer.js";
import {
  daysAgo,
  formatBytes,
  formatCount,
  formatDuration,
  formatUsd,
  percent,
} from "../../gateway_app/static/gateway_app/js/format.js";
import { queueItems } from "../../gateway_app/static/gateway_app/js/queue_panel.js";
import {
  grouped,
  withFirstPage,
  withSession,
} from "../../gateway_app/static/gateway_app/js/session_list.js";
import { emptySession } from "../../gateway_app/static/gateway_app/js/store.js";
import { stripWords } from "../../gateway_app/static/gateway_app/js/strip.js";
import { failTurn, finishTurn } from "../../gateway_app/static/gateway_app/js/turns.js";
import { ordinal, whyVerdict } from "../../gateway_app/static/gateway_app/js/words.js";
import { FINISHED, SESSION, TURN, message } from "./fakes.js";

const NOW = new Date(2026, 10, 30, 12, 0);
const at = (...parts) => new Date(...parts).toISOString();

test("it writes numbers as people read them", () => {
  assert.deepEqual([0, 999, 1000, 8123, 9960, 999_600].map(formatCount), [
    "0", "999", "1.0k", "8.1k", "10k", "1.0M",
  ]);
  assert.deepEqual([14, 999, 3200, 9960, 59_600, 125_000].map(formatDuration), [
    "14 ms", "999 ms", "3.2 s", "10 s", "1 min 0 s", "2 min 5 s",
  ]);
  assert.deepEqual([0, 0.0004, 0.004, 0.25].map(formatUsd), ["$0", "<$0.001", "$0.004", "$0.25"]);
  assert.deepEqual([900, 2048, 1_048_576, 1_300_000].map(formatBytes), [
    "900 B", "2 KB", "1 MB", "1.2 MB",
  ]);
  assert.equal(percent(999, 1000), 99);
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 112].map(ordinal), [
    "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th",
  ]);
});

test("it counts days by midnights, not by hours", () => {
  assert.equal(daysAgo(at(2026, 10, 29, 23, 59), NOW), 1);
  assert.equal(daysAgo(at(2026, 10, 30, 0, 1), NOW), 0);
});

test("it groups conversations by day, newest first, pinned ones above", () => {
  const session = (id, updatedAt, pinned = false) => ({ id, updatedAt, pinned });
  const groups = grouped(
    [
      session("old", at(2026, 8, 1)),
      session("yesterday", at(2026, 10, 29, 8)),
      session("morning", at(2026, 10, 30, 8)),
      session("noon", at(2026, 10, 30, 11)),
      session("week", at(2026, 10, 24)),
      session("month", at(2026, 10, 4)),
      session("pin", at(2020, 1, 1), true),
    ],
    NOW,
  );
  assert.deepEqual(
    groups.map((group) => group.sessions.map((one) => one.id)),
    [["pin"], ["noon", "morning"], ["yesterday"], ["week"], ["month"], ["old"]],
  );
  assert.deepEqual(groups.slice(0, 5).map((group) => group.name), [
    "Pinned", "Today", "Yesterday", "Last 7 days", "November 2026",
  ]);
});

test("it keeps older pages when the first page comes again, without what was deleted", () => {
  const session = (id, day) => ({ id, updatedAt: at(2026, 10, day), pinned: false });
  const known = [session("a", 20), session("gone", 19), session("b", 18), session("older", 1)];
  const page = [session("new", 21), session("a", 20), session("b", 18)];
  const ids = withFirstPage(known, page, false).map((one) => one.id);
  assert.deepEqual(ids, ["new", "a", "b", "older"]);
  assert.deepEqual(withFirstPage(known, page, true), page);
  assert.equal(withSession(known, { ...known[0], title: "x" }).length, 4);
});

test("it tells a listener starts and ends, and failures at once", () => {
  const idle = { ...emptySession(SESSION), loaded: true };
  const running = { ...idle, run: { turnId: TURN, steps: [] } };
  const done = (state, more = {}) => ({
    ...idle,
    messages: [message("a", 1)],
    turns: { [TURN]: { turnId: TURN, state, ...more } },
  });
  assert.deepEqual(announcement(idle, running), { polite: "Assistant is answering" });
  assert.equal(announcement(running, running), null);
  assert.deepEqual(announcement(running, done("completed")), { polite: "Answer finished, 3 words" });
  assert.deepEqual(announcement(running, done("stopped")), { polite: "Answer stopped" });
  assert.deepEqual(announcement(running, done("failed", { error: { message: "Silence." } })), {
    alert: "Silence.",
  });
  const notice = message("n", 2, { kind: "notice", parts: [{ type: "text", text: "Stille." }] });
  const failed = done("failed", { error: { message: "Silence." } });
  assert.deepEqual(announcement(running, { ...failed, messages: [notice] }), { alert: "Stille." });
  assert.equal(announcement(running, { ...idle, sessionId: "other" }), null);
  const expecting = { sessionId: SESSION, run: null, expected: TURN };
  assert.deepEqual(announcement(expecting, running), { polite: "Assistant is answering" });
  assert.deepEqual(announcement(expecting, done("completed")), {
    polite: "Answer finished, 3 words",
  });
  assert.equal(announcement(expecting, idle), null);
  assert.equal(announcement(idle, done("completed")), null);
  assert.deepEqual(announcement(null, running), { polite: "Assistant is answering" });
});

test("it says nothing of a connection that is well, and what to expect of one that is not", () => {
  const strip = (state, more) =>
    stripWords(
      { phase: "ready", online: true, draining: false, ...state },
      { waiting: 0, everReady: true, updated: false, lost: false, ...more },
    );
  assert.equal(strip({}), null);
  assert.equal(strip({ phase: "connecting" }, { everReady: false }), null);
  assert.equal(strip({ phase: "waiting" }).strong, "Reconnecting.");
  const offline = strip({ phase: "waiting", online: false }, { waiting: 2 });
  assert.equal(offline.strong, "You are offline.");
  assert.equal(offline.more, "2 messages wait here and go out in order.");
  assert.equal(offline.action, "now");
  assert.equal(strip({ storing: false }).strong, "This server cannot store anything at present.");
  assert.equal(strip({ storing: true }), null);
  assert.equal(strip({ draining: true }).strong, "This server restarts; you are moved over.");
  assert.equal(strip({ phase: "waiting", draining: true }).action, null);
  assert.equal(strip({}, { updated: true }).action, "reload");
  assert.deepEqual(
    [strip({ phase: "refused", sentence: "No." }).strong, strip({ phase: "login" }).action],
    ["No.", "login"],
  );
  assert.equal(strip({}, { lost: true }), null);
  assert.equal(strip({}, { lost: true, waiting: 1 }).more, "Sending 1 message.");
  assert.equal(strip({}, { waiting: 1 }), null);
});

test("it keeps of a turn what was told, and leaves out what was not", () => {
  const turn = finishTurn({ turnId: TURN }, FINISHED);
  assert.deepEqual(turn, {
    turnId: TURN,
    state: "completed",
    verdict: "reuse",
    reason: "",
    revision: 4,
    usage: { inputTokens: 100, cachedInputTokens: 90, outputTokens: 5 },
    durationMs: 900,
  });
  const fallback = { model: "anthropic:claude-x", fallbackFrom: "openai:gpt-x" };
  const other = finishTurn({ turnId: TURN }, { metadata: { hermes: fallback } });
  assert.deepEqual([other.model, other.fallbackFrom], ["anthropic:claude-x", "openai:gpt-x"]);
  const untold = finishTurn({ turnId: TURN }, { outcome: { type: "cancelled" } });
  assert.deepEqual(untold, { turnId: TURN, state: "stopped" });
  const part = finishTurn({ turnId: TURN }, { usage: [{ inputTokens: 5 }, { inputTokens: 7 }] });
  assert.deepEqual(part.usage, { inputTokens: 12 });
  const failed = failTurn({ turnId: TURN }, { code: "model_auth", message: "No." });
  assert.deepEqual([failed.state, failed.error.code], ["failed", "model_auth"]);
});

test("it gives every verdict a reason in words", () => {
  for (const verdict of ["reuse", "catch_up", "reload", "rebuild"]) {
    assert.match(whyVerdict(verdict, ""), /\.$/);
  }
  assert.match(whyVerdict("rebuild", "reconfigured"), /settings changed/);
  assert.match(whyVerdict("rebuild", "rewritten"), /edited/);
});

test("it lists the server's queue by place, then what is on its way there", () => {
  const queue = [
    { turnId: "t2", place: 2, content: "two" },
    { turnId: "t1", place: 1, content: [{ type: "text", text: "one" }], whenBusy: "steer" },
  ];
  const listed = queueItems(queue, [{ clientMessageId: "c", content: "three" }]);
  assert.deepEqual(listed.map((item) => [item.turnId, item.text, item.way]), [
    ["t1", "one", "steer"],
    ["t2", "two", "queue"],
    [null, "three", "queue"],
  ]);
});
