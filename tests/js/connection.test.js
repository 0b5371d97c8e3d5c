import assert from "node:assert/strict";
import { test } from "node:test";

import { retryDelay } from "../../gateway_app/static/gateway_app/js/backoff.js";
import { Connection } from "../../gateway_app/static/gateway_app/js/connection.js";
import { FakeClock, FakeSocket, settled } from "./fakes.js";

function setUp({ login = "ok" } = {}) {
  const at = { sockets: [], states: [], frames: [], hellos: 0, online: true, clock: new FakeClock() };
  at.connection = new Connection({
    clock: at.clock,
    openSocket: (protocol) => {
      assert.equal(protocol, "hermes.v1");
      at.sockets.push(new FakeSocket());
      return at.sockets.at(-1);
    },
    isOnline: () => at.online,
    checkLogin: async () => login,
    onState: (state) => at.states.push(state),
    onReady: () => (at.hellos += 1),
    onFrame: (frame) => at.frames.push(frame),
  });
  return at;
}

const LIMITS = { limits: { heartbeatMs: 25_000 } };

async function connected(options) {
  const at = setUp(options);
  at.connection.connect();
  await at.sockets[0].open();
  await at.sockets[0].reply("hello", LIMITS);
  return at;
}

test("it says hello first and is ready after the reply", async () => {
  const at = setUp();
  at.connection.connect();
  await at.sockets[0].open();
  assert.deepEqual(at.sockets[0].sent, [
    { id: "1", type: "hello", protocol: "hermes.v1", client: "web" },
  ]);
  assert.equal(at.connection.ready, false);
  await at.sockets[0].reply("hello", LIMITS);
  assert.equal(at.connection.ready, true);
  assert.equal(at.hellos, 1);
});

test("it answers requests with results, refusals and losses", async () => {
  const at = await connected();
  const good = at.connection.request({ type: "one" });
  await at.sockets[0].reply("one", { fine: true });
  assert.deepEqual(await good, { fine: true });
  const refused = at.connection.request({ type: "two" });
  at.sockets[0].refuse("two", { code: "busy", message: "Busy.", retryable: false });
  await assert.rejects(refused, { code: "busy", message: "Busy.", retryable: false });
  const lost = at.connection.request({ type: "three" });
  at.sockets[0].end(1006);
  await assert.rejects(lost, { code: "connection_lost", retryable: true });
  await assert.rejects(at.connection.request({ type: "four" }), { code: "connection_lost" });
});

test("it reconnects after a loss, waiting longer each time and never longer than half a minute", async () => {
  const at = await connected();
  await at.sockets[0].end(4012);
  const waits = [];
  for (let round = 0; round < 9; round++) {
    const { retryAt, phase } = at.connection.state;
    assert.equal(phase, "waiting");
    waits.push(retryAt - at.clock.time);
    await at.clock.pass(retryAt - at.clock.time);
    assert.equal(at.sockets.length, round + 2);
    await at.sockets.at(-1).end(1006);
  }
  assert.deepEqual(waits, [375, 750, 1500, 3000, 6000, 12000, 22500, 22500, 22500]);
});

test("it spreads its tries over half of the interval", () => {
  assert.equal(retryDelay(3, () => 0), 2000);
  assert.equal(retryDelay(3, () => 0.999999), 4000);
});

test("it starts again with a short wait once it was connected", async () => {
  const at = await connected();
  await at.sockets[0].end(1006);
  await at.clock.pass(375);
  await at.sockets[1].end(1006);
  await at.clock.pass(750);
  await at.sockets[2].open();
  await at.sockets[2].reply("hello", LIMITS);
  await at.sockets[2].end(1006);
  assert.equal(at.connection.state.retryAt - at.clock.time, 375);
});

test("it gives up a silent socket within two heartbeats, after asking for a sign of life", async () => {
  const at = await connected();
  await at.clock.pass(34_000);
  assert.ok(at.sockets[0].count("ping") > 0);
  assert.equal(at.sockets[0].closed, false);
  await at.clock.pass(2_000);
  assert.equal(at.sockets[0].closed, true);
  assert.notEqual(at.connection.state.phase, "ready");
  await at.clock.pass(1_000);
  assert.equal(at.sockets.length, 2);
});

test("it stays with a socket that any frame comes from", async () => {
  const at = await connected();
  for (let minute = 0; minute < 5; minute++) {
    await at.clock.pass(30_000);
    await at.sockets[0].receive({ type: "ping" });
  }
  assert.equal(at.sockets.length, 1);
  assert.equal(at.connection.ready, true);
});

test("it finds a dead socket within seconds when the network changed", async () => {
  const at = await connected();
  at.connection.probe();
  await at.clock.pass(4_900);
  assert.equal(at.sockets[0].closed, false);
  await at.clock.pass(200);
  assert.equal(at.sockets[0].closed, true);
});

test("it keeps a socket that answers the probe", async () => {
  const at = await connected();
  at.connection.probe();
  await at.sockets[0].reply("ping", {});
  await at.clock.pass(10_000);
  assert.equal(at.sockets[0].closed, false);
});

test("it drops a server that does not answer hello", async () => {
  const at = setUp();
  at.connection.connect();
  await at.sockets[0].open();
  await at.clock.pass(10_000);
  assert.equal(at.sockets[0].closed, true);
  assert.equal(at.connection.state.phase, "waiting");
});

test("it acknowledges after 64 frames at once and after a second else", async () => {
  const at = await connected();
  for (let seq = 1; seq <= 63; seq++) at.connection.noteEvent("s", seq);
  assert.equal(at.sockets[0].count("ack"), 0);
  at.connection.noteEvent("s", 64);
  assert.deepEqual(at.sockets[0].last("ack"), { type: "ack", acks: { s: 64 } });
  at.connection.noteEvent("s", 65);
  at.connection.noteEvent("t", 7);
  await at.clock.pass(999);
  assert.equal(at.sockets[0].count("ack"), 1);
  await at.clock.pass(1);
  assert.deepEqual(at.sockets[0].last("ack"), { type: "ack", acks: { s: 65, t: 7 } });
  await at.clock.pass(5_000);
  assert.equal(at.sockets[0].count("ack"), 2);
});

test("it owes a new socket nothing for frames of the old one", async () => {
  const at = await connected();
  at.connection.noteEvent("s", 1);
  await at.sockets[0].end(1006);
  await at.clock.pass(375);
  await at.sockets[1].open();
  await at.sockets[1].reply("hello", LIMITS);
  await at.clock.pass(2_000);
  assert.equal(at.sockets[1].count("ack"), 0);
});

test("it asks for a login when its credential was revoked, and stays away", async () => {
  for (const end of [(socket) => socket.end(4001), (socket) => socket.receive({ type: "revoked" })]) {
    const at = await connected();
    await end(at.sockets[0]);
    assert.equal(at.connection.state.phase, "login");
    await at.clock.pass(60_000);
    at.connection.connect();
    assert.equal(at.sockets.length, 1);
  }
});

test("it asks for a login when the door stays shut because of it", async () => {
  const at = setUp({ login: "login" });
  at.connection.connect();
  await at.sockets[0].end(1006);
  assert.equal(at.connection.state.phase, "login");
});

test("it tries on when the door stays shut because nobody is there", async () => {
  const at = setUp({ login: "unreachable" });
  at.connection.connect();
  await at.sockets[0].end(1006);
  assert.equal(at.connection.state.phase, "waiting");
  await at.clock.pass(375);
  assert.equal(at.sockets.length, 2);
});

test("it tries also while the browser says that it is offline, and says so", async () => {
  const at = setUp();
  at.online = false;
  at.connection.connect();
  assert.equal(at.sockets.length, 1);
  await at.sockets[0].end(1006);
  assert.equal(at.connection.state.online, false);
  await at.clock.pass(375);
  assert.equal(at.sockets.length, 2);
});

test("it remembers that the server drains until it is connected again", async () => {
  const at = await connected();
  await at.sockets[0].receive({ type: "storage", storing: false });
  assert.deepEqual([at.connection.state.phase, at.connection.state.storing], ["ready", false]);
  await at.sockets[0].receive({ type: "storage", storing: true });
  assert.equal(at.connection.state.storing, true);
  await at.sockets[0].receive({ type: "draining" });
  assert.deepEqual([at.connection.state.phase, at.connection.state.draining], ["ready", true]);
  await at.sockets[0].end(4012);
  assert.equal(at.connection.state.draining, true);
  await at.clock.pass(375);
  await at.sockets[1].open();
  await at.sockets[1].reply("hello", LIMITS);
  assert.equal(at.connection.state.draining, false);
});

test("it stops when the server does not speak its protocol", async () => {
  const at = setUp();
  at.connection.connect();
  await at.sockets[0].open();
  const message = "This server speaks hermes.v2.";
  await at.sockets[0].refuse("hello", { code: "unsupported", message, retryable: false });
  assert.deepEqual([at.connection.state.phase, at.connection.state.sentence], ["refused", message]);
  await at.clock.pass(120_000);
  assert.equal(at.sockets.length, 1);
});

test("it passes frames on and ignores what is none", async () => {
  const at = await connected();
  at.sockets[0].onmessage({ data: "not json" });
  at.sockets[0].onmessage({ data: "[1]" });
  at.sockets[0].onmessage({ data: "null" });
  await at.sockets[0].receive({ sessionId: "s", seq: 2, prev: 1, event: { type: "X" } });
  await settled();
  assert.deepEqual(at.frames, [
    { kind: "event", sessionId: "s", seq: 2, prev: 1, event: { type: "X" } },
  ]);
});
