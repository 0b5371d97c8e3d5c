import assert from "node:assert/strict";
import { test } from "node:test";

import { Outbox, movedTo } from "../../gateway_app/static/gateway_app/js/outbox.js";
import { CommandError, ConnectionLost } from "../../gateway_app/static/gateway_app/js/protocol.js";
import { Sender } from "../../gateway_app/static/gateway_app/js/sender.js";
import { Drafts, SafeStorage } from "../../gateway_app/static/gateway_app/js/storage.js";
import { emptySession } from "../../gateway_app/static/gateway_app/js/store.js";
import { Unconfirmed } from "../../gateway_app/static/gateway_app/js/unconfirmed.js";
import { FakeClock, SESSION, fakeStorage, message, settled } from "./fakes.js";

const NAME = "hermes.outbox.1";

function setUp(storage = fakeStorage()) {
  const at = { asked: [], sent: [], clock: new FakeClock(), storage, ready: true };
  at.outbox = new Outbox(storage, NAME);
  at.unconfirmed = new Unconfirmed(at.outbox);
  at.connection = {
    get ready() {
      return at.ready;
    },
    request: (body) =>
      new Promise((resolve, reject) => at.asked.push({ body, resolve, reject })),
  };
  at.sender = new Sender({
    connection: at.connection,
    outbox: at.outbox,
    clock: at.clock,
    withLock: (work) => work(),
    maxQueued: () => 32,
    onSent: (entry, result) => {
      at.sent.push(entry.clientMessageId);
      at.unconfirmed.confirmed(entry, result);
    },
    onChange: () => {},
    onElsewhere: (entries) => at.unconfirmed.confirmedElsewhere(entries, at.clock.now()),
  });
  return at;
}

function add(at, clientMessageId, conversation = SESSION) {
  at.outbox.add({ clientMessageId, conversation, content: `Text ${clientMessageId}`, createdAt: "" });
}

async function answer(at, number, result) {
  at.asked[number].resolve({ sessionId: SESSION, replayed: false, ...result });
  await settled();
}

async function refuse(at, number, error) {
  at.asked[number].reject(error);
  await settled();
}

test("it sends what waits one after the other, in order, each once", async () => {
  const at = setUp();
  ["a", "b", "c"].forEach((id) => add(at, id));
  at.sender.pump();
  at.sender.pump();
  for (let number = 0; number < 3; number++) {
    await settled();
    assert.equal(at.asked.length, number + 1);
    await answer(at, number, { turnId: `t${number}`, status: "running" });
  }
  assert.deepEqual(at.sent, ["a", "b", "c"]);
  assert.deepEqual(at.outbox.entries, []);
});

test("it keeps what waits over a reload, and sends it under the same id", async () => {
  const before = setUp();
  before.ready = false;
  add(before, "a");
  before.sender.pump();
  await settled();
  assert.equal(before.asked.length, 0);
  const after = setUp(before.storage);
  after.sender.pump();
  await settled();
  assert.deepEqual(after.asked[0].body, {
    type: "message.send",
    sessionId: SESSION,
    clientMessageId: "a",
    content: "Text a",
    whenBusy: "queue",
  });
});

test("it sends again under the same id what got no reply, and lets nobody change it", async () => {
  const at = setUp();
  add(at, "a");
  at.sender.pump();
  await settled();
  at.ready = false;
  await refuse(at, 0, new ConnectionLost());
  assert.equal(at.outbox.get("a").tried, true);
  at.ready = true;
  at.sender.pump();
  await settled();
  assert.equal(at.asked[1].body.clientMessageId, "a");
});

test("it gives the followers of a new conversation the session that the first one opened", async () => {
  const at = setUp();
  add(at, "a", "new:1");
  add(at, "b", "new:1");
  at.sender.pump();
  await settled();
  assert.equal("sessionId" in at.asked[0].body, false);
  await answer(at, 0, { turnId: "t", status: "running" });
  assert.equal(at.asked[1].body.sessionId, SESSION);
});

test("it keeps a refused message with the reason and goes on with the next", async () => {
  const at = setUp();
  ["a", "b"].forEach((id) => add(at, id));
  at.sender.pump();
  await settled();
  const text = "The message is empty. Write something.";
  await refuse(at, 0, new CommandError({ code: "invalid_frame", message: text }));
  assert.equal(at.outbox.get("a").failed, text);
  assert.equal(at.asked[1].body.clientMessageId, "b");
});

test("it says how many wait when the queue is full, also if that can be tried again", async () => {
  const at = setUp();
  add(at, "a");
  at.sender.pump();
  await settled();
  await refuse(at, 0, new CommandError({ code: "queue_full", message: "x", retryable: true }));
  assert.match(at.outbox.get("a").failed, /^32 messages already wait here/);
});

test("it waits as long as the server asks before it tries again", async () => {
  const at = setUp();
  add(at, "a");
  at.sender.pump();
  await settled();
  const busy = { code: "rate_limited", message: "x", retryable: true, retryAfterMs: 700 };
  await refuse(at, 0, new CommandError(busy));
  await at.clock.pass(699);
  assert.equal(at.asked.length, 1);
  await at.clock.pass(1);
  assert.equal(at.asked.length, 2);
  assert.equal(at.outbox.get("a").failed, null);
});

test("it keeps what another tab put into the outbox meanwhile", () => {
  const one = setUp();
  const other = setUp(one.storage);
  add(one, "a");
  add(other, "b");
  one.outbox.remove("a");
  assert.deepEqual(new Outbox(one.storage, NAME).entries.map((entry) => entry.clientMessageId), ["b"]);
});

test("it draws one bubble before, between and after ack and echo, in any order of the two", async () => {
  for (const echoFirst of [true, false]) {
    const at = setUp();
    let state = { ...emptySession(SESSION), loaded: true };
    const shown = () => {
      const { bubbles, queued } = at.unconfirmed.of(SESSION, state, true);
      const echoed = state.messages.map((row) => row.clientMessageId);
      return [...echoed, ...bubbles.map((entry) => entry.clientMessageId), ...queued];
    };
    add(at, "a");
    at.sender.pump();
    await settled();
    assert.deepEqual(shown(), ["a"]);
    const echo = () => {
      const row = message("u1", 1, { kind: "user", clientMessageId: "a" });
      state = { ...state, messages: [row] };
    };
    const ack = () => answer(at, 0, { turnId: "t", status: "running" });
    for (const step of echoFirst ? [echo, ack] : [ack, echo]) {
      await step();
      assert.deepEqual(shown(), ["a"]);
    }
  }
});

test("it draws a message that will wait among those that wait, once", async () => {
  const at = setUp();
  let state = { ...emptySession(SESSION), loaded: true, run: { turnId: "t0", steps: [] } };
  add(at, "a");
  at.sender.pump();
  await settled();
  const look = () => at.unconfirmed.of(SESSION, state, true);
  assert.deepEqual([look().bubbles.length, look().queued.length], [0, 1]);
  await answer(at, 0, { turnId: "t1", status: "queued", place: 1 });
  assert.deepEqual([look().bubbles.length, look().queued.length], [0, 1]);
  state = { ...state, queue: [{ turnId: "t1", place: 1, content: "Text a" }] };
  assert.deepEqual([look().bubbles.length, look().queued.length], [0, 0]);
});

test("it draws what waits once, in any order of ack and queue", async () => {
  for (const echoFirst of [true, false]) {
    const at = setUp();
    let state = { ...emptySession(SESSION), loaded: true, run: { turnId: "t0", steps: [] } };
    const shown = () => {
      const { bubbles, queued } = at.unconfirmed.of(SESSION, state, true);
      return [...state.queue, ...bubbles, ...queued].map((entry) => entry.clientMessageId);
    };
    add(at, "a");
    at.sender.pump();
    await settled();
    assert.deepEqual(shown(), ["a"]);
    const echo = () => {
      const item = { turnId: "t1", place: 1, content: "Text a", clientMessageId: "a" };
      state = { ...state, queue: [item] };
    };
    const ack = () => answer(at, 0, { turnId: "t1", status: "queued", place: 1 });
    for (const step of echoFirst ? [echo, ack] : [ack, echo]) {
      await step();
      assert.deepEqual(shown(), ["a"]);
    }
  }
});

test("it draws what waits for the network in order, with its place", () => {
  const at = setUp();
  ["a", "b"].forEach((id) => add(at, id));
  const { bubbles, queued } = at.unconfirmed.of(SESSION, null, false);
  assert.deepEqual(bubbles.map((entry) => [entry.clientMessageId, entry.place, entry.connected]), [
    ["a", 1, false],
    ["b", 2, false],
  ]);
  assert.deepEqual(queued, []);
});

test("it does not draw again what a repeat found accepted long ago", async () => {
  for (const status of ["completed", "running"]) {
    const at = setUp();
    add(at, "a");
    at.sender.pump();
    await settled();
    await answer(at, 0, { turnId: "t", status, replayed: true });
    assert.deepEqual(at.unconfirmed.of(SESSION, emptySession(SESSION), true).bubbles, []);
  }
});

test("it keeps a draft per conversation, and works where storage is forbidden", () => {
  const forbidden = {
    getItem: () => { throw new Error("no"); },
    setItem: () => { throw new Error("no"); },
    removeItem: () => { throw new Error("no"); },
  };
  for (const storage of [fakeStorage(), forbidden]) {
    const drafts = new Drafts(new SafeStorage(storage), "d");
    drafts.set("new:1", "for a new one");
    drafts.set(SESSION, "for this one");
    assert.equal(drafts.get("new:2"), "for a new one");
    assert.equal(drafts.get(SESSION), "for this one");
    drafts.set(SESSION, "");
    assert.equal(drafts.get(SESSION), "");
  }
});

test("it keeps drawing what another tab had confirmed, until the events show it", async () => {
  const one = setUp();
  const other = setUp(one.storage);
  add(one, "a");
  other.unconfirmed.confirmedElsewhere(other.outbox.reload(), 0);
  one.outbox.markTried("a");
  other.unconfirmed.confirmedElsewhere(other.outbox.reload(), 0);
  one.outbox.remove("a");
  other.unconfirmed.confirmedElsewhere(other.outbox.reload(), 0);
  let state = { ...emptySession(SESSION), loaded: true };
  const shown = (now) => other.unconfirmed.of(SESSION, state, true, now).bubbles.length;
  assert.equal(shown(29_000), 1);
  state = { ...state, messages: [message("u1", 1, { kind: "user", clientMessageId: "a" })] };
  assert.equal(shown(29_000), 0);
});

test("it shows once what another tab sent into the queue", () => {
  const at = setUp();
  add(at, "a");
  at.outbox.markTried("a");
  const run = { runId: "r" };
  let state = { ...emptySession(SESSION), loaded: true, run };
  const queued = () => at.unconfirmed.of(SESSION, state, true, 0).queued.length;
  at.unconfirmed.confirmedElsewhere([at.outbox.get("a")], 0);
  at.outbox.remove("a");
  assert.equal(queued(), 1);
  state = { ...state, queue: [{ turnId: "t", place: 1, clientMessageId: "a" }] };
  assert.equal(queued(), 0);
});

test("it forgets what another tab had confirmed if no event ever shows it", () => {
  const at = setUp();
  add(at, "a");
  at.outbox.markTried("a");
  at.unconfirmed.confirmedElsewhere([at.outbox.get("a")], 0);
  at.outbox.remove("a");
  assert.equal(at.unconfirmed.of(SESSION, emptySession(SESSION), true, 30_001).bubbles.length, 0);
});

test("it takes a message that another tab removed for removed", () => {
  const one = setUp();
  const other = setUp(one.storage);
  add(one, "a");
  other.outbox.reload();
  one.outbox.remove("a");
  other.unconfirmed.confirmedElsewhere(other.outbox.reload(), 0);
  assert.deepEqual(other.unconfirmed.of(SESSION, emptySession(SESSION), true, 0).bubbles, []);
});

test("it names the agent and model only for a conversation that the message opens", async () => {
  const at = setUp();
  const chosen = { content: "x", createdAt: "", agent: "coder", model: "local:smollm2" };
  at.outbox.add({ ...chosen, clientMessageId: "a", conversation: "new:1" });
  at.outbox.add({ ...chosen, clientMessageId: "b", conversation: "new:1", whenBusy: "interrupt" });
  at.sender.pump();
  await settled();
  assert.deepEqual([at.asked[0].body.agent, at.asked[0].body.model], ["coder", "local:smollm2"]);
  await answer(at, 0, { turnId: "t", status: "running" });
  assert.equal("model" in at.asked[1].body, false);
  assert.equal(at.asked[1].body.whenBusy, "interrupt");
});

test("it follows a message that another tab sent into the session that it opened", () => {
  const entry = (id, conversation) => ({ clientMessageId: id, conversation });
  const before = JSON.stringify([entry("a", "new:1"), entry("b", "new:2")]);
  const after = JSON.stringify([entry("a", "session"), entry("b", "new:2")]);
  assert.equal(movedTo("new:1", before, after), "session");
  assert.equal(movedTo("new:2", before, after), null);
  assert.equal(movedTo("new:1", before, JSON.stringify([])), null);
  assert.equal(movedTo("new:1", null, after), null);
});

test("it leaves a bubble in its place when its own run begins before its echo and its ack", async () => {
  const at = setUp();
  let state = { ...emptySession(SESSION), loaded: true };
  add(at, "a");
  add(at, "b");
  at.sender.pump();
  await settled();
  const look = () => {
    const { bubbles, queued } = at.unconfirmed.of(SESSION, state, true);
    return [bubbles, queued].map((list) => list.map((entry) => entry.clientMessageId));
  };
  assert.deepEqual(look(), [["a"], ["b"]]);
  state = { ...state, run: { turnId: "t", steps: [] } };
  assert.deepEqual(look(), [["a"], ["b"]]);
  await answer(at, 0, { turnId: "t", status: "running" });
  assert.deepEqual(look(), [["a"], ["b"]]);
});
