// The list of conversations: both lists, pages, news of others, what was seen.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parseFrame } from "../../gateway_app/static/gateway_app/js/protocol.js";
import { Seen } from "../../gateway_app/static/gateway_app/js/seen.js";
import { sessionMark } from "../../gateway_app/static/gateway_app/js/session_list.js";
import { Sessions } from "../../gateway_app/static/gateway_app/js/sessions.js";
import { emptySession } from "../../gateway_app/static/gateway_app/js/store.js";
import { FakeClock, SESSION, message, settled } from "./fakes.js";

const QUIET = { pinned: false, archived: false, running: false, failed: false, unread: false };

function row(id, more = {}) {
  return { id, title: id, updatedAt: "2026-11-30T10:00:00.000Z", ...QUIET, ...more };
}

/** A server that holds `rows` and answers as the gateway does; what it was asked is in `asked`. */
function setUp(rows = []) {
  const at = { rows, asked: [], clock: new FakeClock(), drawn: 0, away: false };
  const answer = (body) => {
    if (body.type !== "session.list") return {};
    const fits = (one) =>
      one.archived === Boolean(body.archived) &&
      (body.pinned === undefined || one.pinned === body.pinned) &&
      (body.query === undefined || one.title.includes(body.query));
    const from = Number(body.cursor ?? 0);
    const all = at.rows.filter(fits);
    const end = from + body.limit;
    return { sessions: all.slice(from, end), nextCursor: end < all.length ? String(end) : null };
  };
  at.connection = {
    request: async (body) => {
      at.asked.push(body);
      if (at.away) throw new Error("away");
      return answer(body);
    },
  };
  at.sessions = new Sessions({
    connection: at.connection,
    clock: at.clock,
    onChange: () => at.drawn++,
  });
  at.ids = () => at.sessions.list.map((one) => one.id).sort();
  at.hear = (frame) => at.sessions.accept(parseFrame(JSON.stringify(frame)));
  return at;
}

test("it lists pinned conversations however old, and pages of the others", async () => {
  const many = Array.from({ length: 90 }, (_, number) => row(`s${number}`));
  const at = setUp([...many, row("old", { pinned: true }), row("away", { archived: true })]);
  await at.sessions.refresh();
  assert.equal(at.sessions.list.length, 41);
  assert.equal(at.sessions.find("old").pinned, true);
  assert.equal(at.sessions.hasArchived, true);
  await at.sessions.loadMore();
  await Promise.all([at.sessions.loadMore(), at.sessions.loadMore()]);
  assert.equal(at.sessions.list.length, 91);
  assert.equal(at.sessions.hasMore, false);
  at.sessions.show({ archived: true });
  await settled();
  assert.deepEqual(at.ids(), ["away"]);
});

test("it follows what others do, in the list where it belongs", async () => {
  const at = setUp([row("a")]);
  await at.sessions.refresh();
  assert.equal(at.hear({ type: "session", session: row("b", { running: true }) }), true);
  assert.deepEqual(at.ids(), ["a", "b"]);
  at.hear({ type: "session", session: row("a", { archived: true }) });
  assert.deepEqual(at.ids(), ["b"]);
  assert.equal(at.sessions.find("a").archived, true);
  at.hear({ type: "gone", sessionId: "b" });
  assert.deepEqual(at.ids(), []);
  assert.equal(at.hear({ type: "snapshot", sessionId: "a" }), false);
  assert.equal(at.hear({ sessionId: "a", seq: 1, prev: 0, event: { type: "CUSTOM" } }), false);
});

test("it lists again after a while, for what it never heard", async () => {
  const at = setUp([row("a")]);
  await at.sessions.refresh();
  at.rows = [row("b")];
  await at.clock.pass(60_000);
  assert.deepEqual(at.ids(), ["b"]);
});

test("it keeps the list that it has while nobody answers", async () => {
  const at = setUp([row("a")]);
  await at.sessions.refresh();
  at.away = true;
  await at.sessions.refresh();
  assert.deepEqual(at.ids(), ["a"]);
  assert.equal(await at.sessions.search("a", 5), null);
});

test("it searches both lists, those at hand first", async () => {
  const at = setUp([row("cat one", { archived: true }), row("cat two"), row("dog")]);
  const found = await at.sessions.search("cat", 5);
  assert.deepEqual(found.map((one) => one.id), ["cat two", "cat one"]);
});

test("it marks a conversation by the one thing that matters most", () => {
  assert.equal(sessionMark(row("a")), "idle");
  assert.equal(sessionMark(row("a", { unread: true })), "unread");
  assert.equal(sessionMark(row("a", { unread: true }), true), "idle");
  assert.equal(sessionMark(row("a", { unread: true, failed: true })), "failed");
  assert.equal(sessionMark(row("a", { failed: true, running: true })), "running");
});

test("it tells what was seen once, when nothing runs and the page is visible", async () => {
  const at = setUp([row(SESSION, { unread: true })]);
  await at.sessions.refresh();
  const page = { visible: false };
  const seen = new Seen({ sessions: at.sessions, isVisible: () => page.visible });
  const told = () => at.asked.filter((body) => body.type === "session.seen");
  const state = { ...emptySession(SESSION), loaded: true, revision: 7 };
  await seen.look(state);
  page.visible = true;
  await seen.look({ ...state, run: { turnId: "t" } });
  await seen.look({ ...state, loaded: false });
  await seen.look(null);
  assert.equal(told().length, 0);
  assert.equal(at.sessions.hasNews("other"), true);
  await seen.look(state);
  await seen.look(state);
  assert.deepEqual(told(), [{ type: "session.seen", sessionId: SESSION, revision: 7 }]);
  assert.equal(at.sessions.hasNews("other"), false);
  await seen.look({ ...state, messages: [{ ...message("m", 1), revision: 9 }] });
  assert.equal(told().at(-1).revision, 9);
});

test("it tells again what the server did not hear", async () => {
  const at = setUp([row(SESSION)]);
  await at.sessions.refresh();
  const seen = new Seen({ sessions: at.sessions, isVisible: () => true });
  const state = { ...emptySession(SESSION), loaded: true, revision: 7 };
  at.away = true;
  await seen.look(state);
  at.away = false;
  await seen.look(state);
  assert.equal(at.asked.filter((body) => body.type === "session.seen").length, 2);
});
