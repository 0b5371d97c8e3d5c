import assert from "node:assert/strict";
import { test } from "node:test";

import {
  contextGauge,
  gaugeSentences,
} from "../../gateway_app/static/gateway_app/js/context_gauge.js";
import { Editing, lastOwnMessage } from "../../gateway_app/static/gateway_app/js/editing.js";
import { modelMenu } from "../../gateway_app/static/gateway_app/js/model_picker.js";
import { Models, placeOf } from "../../gateway_app/static/gateway_app/js/models.js";
import { offeredWays, waysMenu } from "../../gateway_app/static/gateway_app/js/send_ways.js";
import { sizeProblem } from "../../gateway_app/static/gateway_app/js/sizes.js";
import { emptySession } from "../../gateway_app/static/gateway_app/js/store.js";
import { SESSION, TURN, fakeStorage, message } from "./fakes.js";

const LOCAL = { id: "local:smollm2", name: "SmolLM2 135M", provider: "local", contextWindow: 4096 };
const HOSTED = { id: "openai:gpt-5", name: "GPT-5", provider: "openai", default: true };
const AGENTS = [
  { slug: "main", name: "Assistant", default: true, model: "" },
  { slug: "coder", name: "Coder", default: false, model: "local:smollm2" },
];

async function models(storage = fakeStorage()) {
  const connection = { request: async () => ({ models: [HOSTED, LOCAL] }) };
  const made = new Models({ connection, storage, name: "choice", onChange: () => {} });
  made.agents = AGENTS;
  await made.refresh();
  return made;
}

test("it finds the model by the session, then by its agent, then the default", async () => {
  const made = await models();
  assert.equal(made.modelOf({ agent: "main", model: "" }), HOSTED);
  assert.equal(made.modelOf({ agent: "coder", model: "" }), LOCAL);
  assert.equal(made.modelOf({ agent: "coder", model: "openai:gpt-5" }), HOSTED);
  assert.deepEqual(made.modelOf({ agent: "main", model: "openai:qwen3:8b" }), {
    id: "openai:qwen3:8b", name: "qwen3:8b", provider: "openai",
  });
});

test("it keeps a choice for the next new conversation, while it is on offer", async () => {
  const storage = fakeStorage();
  (await models(storage)).choose({ agent: "coder", model: "openai:gpt-5" });
  const made = await models(storage);
  assert.deepEqual(made.choice, { agent: "coder", model: "openai:gpt-5" });
  assert.equal(made.agentOf(null).slug, "coder");
  assert.equal(made.modelOf(null), HOSTED);
  made.list = [LOCAL];
  made.agents = AGENTS.slice(0, 1);
  assert.deepEqual(made.choice, { agent: null, model: null });
});

test("it stays with what it knew when the server does not answer", async () => {
  const made = await models();
  const deaf = new Models({
    connection: { request: () => Promise.reject(new Error("away")) },
    storage: { getItem: () => "not json", setItem: () => {} },
    name: "choice",
    onChange: () => {},
  });
  await deaf.refresh();
  assert.deepEqual([deaf.list, deaf.choice], [[], { agent: null, model: null }]);
  assert.equal(deaf.modelOf(null), null);
  assert.equal(made.list.length, 2);
});

test("it offers agents only where there are several, and says where a model runs", () => {
  const chosen = [];
  const offer = { models: [HOSTED, LOCAL], model: LOCAL, choose: (choice) => chosen.push(choice) };
  const one = modelMenu({ ...offer, agents: AGENTS.slice(0, 1), agent: AGENTS[0] });
  assert.deepEqual(one.map((entry) => [entry.label, entry.detail, entry.checked]), [
    ["GPT-5", "OpenAI", false],
    ["SmolLM2 135M", "on this machine", true],
  ]);
  const two = modelMenu({ ...offer, agents: AGENTS, agent: AGENTS[1] });
  assert.deepEqual(two.map((entry) => entry.heading ?? entry.label), [
    "Agent", "Assistant", "Coder", "Model", "GPT-5", "SmolLM2 135M",
  ]);
  two[2].run();
  two[5].run();
  assert.deepEqual(chosen, [{ agent: "coder" }, { model: "local:smollm2" }]);
  assert.equal(placeOf({ provider: "elsewhere" }), "elsewhere");
});

test("it offers the ways to send that the server has, and no others", () => {
  assert.deepEqual(offeredWays(["queue", "reject"]), ["queue"]);
  assert.deepEqual(offeredWays(["reject", "steer", "interrupt", "queue"]), [
    "queue", "steer", "interrupt",
  ]);
  const sent = [];
  const menu = waysMenu(["queue", "interrupt"], (way) => sent.push(way));
  menu[1].run();
  assert.deepEqual([menu.map((entry) => entry.label), sent], [["Queue", "Send now"], ["interrupt"]]);
});

test("it tells how full the window is, and nothing where it does not know", () => {
  const state = (tokens) => ({
    ...emptySession(SESSION),
    messages: [message("a", 1), message("b", 2, { turnId: "later" })],
    turns: { [TURN]: { turnId: TURN, contextTokens: tokens }, later: { turnId: "later" } },
  });
  assert.equal(contextGauge(state(undefined), LOCAL), null);
  assert.equal(contextGauge(state(100), HOSTED), null);
  assert.equal(contextGauge(state(100), null), null);
  const some = contextGauge(state(1024), LOCAL);
  assert.deepEqual([some.percent, some.nearly], [25, false]);
  assert.equal(
    gaugeSentences(some),
    "The last request held 1,024 tokens; SmolLM2 135M holds 4,096.",
  );
  const much = contextGauge(state(3277), LOCAL);
  assert.deepEqual([much.percent, much.nearly], [80, true]);
  assert.match(gaugeSentences(much), /refused\. Start a new chat/);
  assert.equal(contextGauge(state(9000), LOCAL).percent, 100);
});

test("it tells that a text is too large before it is sent, by its bytes in a frame", () => {
  assert.equal(sizeProblem("x".repeat(90_000), 100_000), "");
  assert.match(sizeProblem("x".repeat(100_000), 100_000), /^This message is 99 KB; the limit is 98 KB/);
  assert.notEqual(sizeProblem("\u0001".repeat(20_000), 100_000), "");
  assert.notEqual(sizeProblem("ä".repeat(60_000), 100_000), "");
});

test("it edits one's own last message, in its conversation only", () => {
  const own = message("u", 1, { kind: "user", author: { id: 1 } });
  const state = { ...emptySession(SESSION), messages: [own, message("a", 2)] };
  assert.equal(lastOwnMessage(state, 1), own);
  assert.equal(lastOwnMessage(state, 2), null);
  assert.equal(lastOwnMessage(emptySession(SESSION), 1), null);
  const editing = new Editing();
  editing.begin(SESSION, "u", "Words");
  assert.deepEqual([editing.of(SESSION).messageId, editing.of("other")], ["u", null]);
  editing.end();
  assert.equal(editing.of(SESSION), null);
});
