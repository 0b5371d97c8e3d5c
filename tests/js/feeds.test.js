import assert from "node:assert/strict";
import { test } from "node:test";

import { Feeds } from "../../gateway_app/static/gateway_app/js/feeds.js";
import { CommandError, ConnectionLost } from "../../gateway_app/static/gateway_app/js/protocol.js";
import { FakeClock, Log, SESSION, TURN, custom, message, settled } from "./fakes.js";

const START = { type: "RUN_STARTED", threadId: SESSION, runId: `${TURN}.1` };

function setUp() {
  const at = { asked: [], noted: [], changed: [], clock: new FakeClock() };
  at.connection = {
    ready: true,
    noteEvent: (sessionId, seq) => at.noted.push(seq),
    request: (body) =>
      new Promise((resolve, reject) => at.asked.push({ body, resolve, reject })),
  };
  at.feeds = new Feeds({
    connection: at.connection,
    clock: at.clock,
    onChange: (sessionId) => at.changed.push(sessionId),
  });
  return at;
}

async function subscribed() {
  const at = setUp();
  at.log = new Log();
  at.feeds.open(SESSION);
  await reply(at, { mode: "snapshot" });
  at.feeds.accept(at.log.snapshot());
  return at;
}

async function reply(at, result) {
  at.asked.at(-1).resolve(result);
  await settled();
}

async function refuse(at, error) {
  at.asked.at(-1).reject(error);
  await settled();
}

const state = (at) => at.feeds.get(SESSION);

test("it follows a session by its snapshot and the events after it", async () => {
  const at = await subscribed();
  at.feeds.accept(at.log.add(START));
  at.feeds.accept(at.log.add(custom("message", message("a", 1))));
  assert.equal(state(at).run.turnId, TURN);
  assert.deepEqual(at.noted, [11, 12]);
});

test("it goes on after a loss from the last event it had", async () => {
  const at = await subscribed();
  at.feeds.accept(at.log.add(START));
  at.feeds.resume();
  assert.deepEqual(at.asked.at(-1).body, {
    type: "session.subscribe",
    sessionId: SESSION,
    after: 11,
  });
  await reply(at, { mode: "replay", from: 11 });
  at.feeds.accept(at.log.add(custom("title", { title: "New" })));
  assert.equal(state(at).session.title, "New");
});

test("it subscribes once more for a gap, and takes nothing until that is answered", async () => {
  const at = await subscribed();
  const lost = at.log.add(START);
  const asked = at.asked.length;
  at.feeds.accept(at.log.add(custom("message", message("a", 1))));
  at.feeds.accept(at.log.add(custom("message", message("b", 2))));
  assert.equal(at.asked.length, asked + 1);
  assert.equal(at.asked.at(-1).body.after, 10);
  await reply(at, { mode: "replay", from: 10 });
  for (const frame of [lost, ...at.log.frames.slice(1)]) at.feeds.accept(frame);
  assert.deepEqual(state(at).messages.map((row) => row.id), ["a", "b"]);
});

test("it reads the past again when it was rewritten", async () => {
  const at = await subscribed();
  at.feeds.accept(at.log.add(custom("rewritten", { fromPosition: 1, revision: 9 }), undefined));
  assert.equal("after" in at.asked.at(-1).body, false);
  await reply(at, { mode: "snapshot" });
  at.log.messages = [message("changed", 1)];
  at.feeds.accept(at.log.snapshot());
  assert.deepEqual(state(at).messages.map((row) => row.id), ["changed"]);
});

test("it keeps two sessions apart", async () => {
  const at = await subscribed();
  at.feeds.open("other");
  at.feeds.accept({ ...at.log.snapshot(), sessionId: "other", seq: 3 });
  at.feeds.accept(at.log.add(START));
  assert.equal(state(at).run.turnId, TURN);
  assert.equal(at.feeds.get("other").run, null);
  at.feeds.accept({ ...at.log.add(START), sessionId: "stranger" });
  assert.equal(at.feeds.get("stranger"), null);
});

test("it says that a session is missing, and looks again when it is opened again", async () => {
  const at = setUp();
  at.feeds.open(SESSION);
  await refuse(at, new CommandError({ code: "not_found", message: "x" }));
  assert.equal(state(at).missing, true);
  at.feeds.open(SESSION);
  assert.equal(at.asked.length, 2);
});

test("it tries again after a refusal that will pass, but not after a loss", async () => {
  const at = setUp();
  at.feeds.open(SESSION);
  const later = { code: "rate_limited", message: "x", retryable: true, retryAfterMs: 50 };
  await refuse(at, new CommandError(later));
  await at.clock.pass(50);
  assert.equal(at.asked.length, 2);
  await refuse(at, new ConnectionLost());
  await at.clock.pass(60_000);
  assert.equal(at.asked.length, 2);
  at.feeds.resume();
  assert.equal(at.asked.length, 3);
});

test("it asks for a page of older rows once at a time", async () => {
  const at = setUp();
  at.feeds.open(SESSION);
  await reply(at, { mode: "snapshot" });
  at.feeds.accept({ ...new Log().snapshot(), hasMore: true, before: "cursor" });
  at.feeds.loadOlder(SESSION);
  at.feeds.loadOlder(SESSION);
  assert.equal(at.asked.length, 2);
  assert.equal(at.asked.at(-1).body.before, "cursor");
  await reply(at, { messages: [message("old", 1)], turns: [], before: null, hasMore: false });
  assert.deepEqual(state(at).messages.map((row) => row.id), ["old"]);
  at.feeds.loadOlder(SESSION);
  assert.equal(at.asked.length, 2);
});

async function withOlderRows() {
  const at = await subscribed();
  at.snapshot = (before) => ({ ...at.log.snapshot(), messages: [message("new", 9)], hasMore: true, before });
  at.feeds.accept(at.snapshot("one"));
  at.feeds.loadOlder(SESSION);
  await reply(at, { messages: [message("old", 5)], turns: [], before: "two", hasMore: true });
  return at;
}

const rows = (at) => state(at).messages.map((row) => `${row.id} ${row.state}`);

test("it reads again what was in sight before the past changed", async () => {
  const at = await withOlderRows();
  at.feeds.accept(at.snapshot("three"));
  assert.equal(at.asked.at(-1).body.before, "three");
  assert.ok(at.feeds.isReading(SESSION));
  await reply(at, { messages: [message("old", 5, { state: "branched" })], turns: [], hasMore: false });
  assert.deepEqual(rows(at), ["old branched", "new active"]);
  assert.ok(!at.feeds.isReading(SESSION));
});

test("it reads again after a page that was on its way when the past changed", async () => {
  const at = await withOlderRows();
  at.feeds.loadOlder(SESSION);
  at.feeds.accept(at.snapshot("three"));
  assert.ok(at.feeds.isReading(SESSION));
  await reply(at, { messages: [message("oldest", 1)], turns: [], hasMore: false });
  assert.equal(at.asked.at(-1).body.before, "three");
  await reply(at, { messages: [message("old", 5, { state: "branched" })], turns: [], hasMore: false });
  assert.deepEqual(rows(at), ["old branched", "new active"]);
});

test("it lets go of rows of another time that it cannot read again", async () => {
  for (const trouble of [new ConnectionLost(), new CommandError({ code: "internal", message: "x" })]) {
    const at = await withOlderRows();
    at.feeds.accept(at.snapshot("three"));
    await refuse(at, trouble);
    assert.deepEqual(rows(at), ["new active"]);
    assert.ok(!at.feeds.isReading(SESSION));
    at.feeds.loadOlder(SESSION);
    assert.equal(at.asked.at(-1).body.before, "three");
    await reply(at, { messages: [message("old", 5)], turns: [], hasMore: false });
    assert.deepEqual(rows(at), ["old active", "new active"]);
  }
});

test("it lets the longest unopened idle session go, never the open or a running one", async () => {
  const at = await subscribed();
  at.feeds.accept(at.log.add(START));
  for (let number = 0; number < 12; number++) at.feeds.open(`s${number}`);
  const kept = at.feeds.all().map((known) => known.sessionId);
  assert.equal(kept.length, 8);
  assert.ok(kept.includes(SESSION));
  assert.ok(kept.includes("s11"));
  for (let number = 0; number < 12; number++) at.feeds.follow(`t${number}`);
  assert.ok(at.feeds.get("s11"));
});
