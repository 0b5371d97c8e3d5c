// What the palette offers, and which keys press what.

import assert from "node:assert/strict";
import { test } from "node:test";

import { headMenu, sessionMenu } from "../../gateway_app/static/gateway_app/js/menus.js";
import { paletteCommands } from "../../gateway_app/static/gateway_app/js/commands.js";
import { SHORTCUTS, keyLabel, pressed } from "../../gateway_app/static/gateway_app/js/keys.js";
import { around, paletteGroups } from "../../gateway_app/static/gateway_app/js/palette_entries.js";

const NOW = new Date(2026, 10, 30, 12, 0);
const DOES = { open: (id) => id, find: (text) => text, ask: (text) => text };
const session = (title, more = {}) => ({
  id: title, title, updatedAt: NOW.toISOString(), archived: false, pinned: false, ...more,
});
const COMMANDS = [{ icon: "moon", label: "Use the dark theme", run: () => {} }];

function offered(typed, more = {}) {
  const state = { typed, sessions: [session("Winter tyres"), session("Cabin")], found: null };
  return paletteGroups({ ...state, commands: COMMANDS, canFind: true, now: NOW, ...more }, DOES);
}

const labels = (groups) => groups.map(({ name, entries }) => [name, entries.map((one) => one.label)]);

test("it offers recent conversations and all commands when nothing is typed", () => {
  assert.deepEqual(labels(offered("")), [
    ["Conversations", ["Winter tyres", "Cabin"]],
    ["Commands", ["Use the dark theme"]],
  ]);
});

test("it offers the newest first, in whatever order they came", () => {
  const at = (minute) => ({ updatedAt: new Date(2026, 10, 30, 11, minute).toISOString() });
  const sessions = [session("Tyre one", at(1)), session("Tyre three", at(3)), session("Tyre two", at(2))];
  for (const typed of ["", "tyre"]) {
    const [[, names]] = labels(offered(typed, { sessions }));
    assert.deepEqual(names, ["Tyre three", "Tyre two", "Tyre one"]);
  }
});

test("it filters what is at hand until the server has answered", () => {
  const asking = ["Commands", ["New chat asking “WIN”"]];
  const finding = ["In this conversation", ["Find “WIN” here"]];
  const here = labels(offered(" WIN "));
  assert.deepEqual(here, [["Conversations", ["Winter tyres"]], finding, asking]);
  const found = [session("Winter coat", { archived: true })];
  const [conversations] = offered("WIN", { found });
  assert.equal(conversations.entries[0].detail, "Archived");
  assert.equal(conversations.entries[0].href, "/c/Winter coat/");
  assert.deepEqual(labels(offered("WIN", { found: [], canFind: false })), [asking]);
});

test("it offers commands only behind the sign for them", () => {
  assert.deepEqual(labels(offered("> dark")), [["Commands", ["Use the dark theme"]]]);
  assert.deepEqual(offered(">nothing"), []);
});

test("it shows where a title holds the words, whatever their case", () => {
  assert.deepEqual(around("Winter tyres", "WINTER"), ["", "Winter", " tyres"]);
  assert.deepEqual(around("Winter tyres", ""), ["Winter tyres", "", ""]);
  assert.deepEqual(around("İstanbul", "stan"), ["İstanbul", "", ""]);
});

test("it offers for a conversation only what can be done with it now", () => {
  const does = new Proxy({}, { get: () => () => {} });
  const named = (state) => paletteCommands(state, does).map((one) => one.label);
  const none = named({ session: null, dark: true, admin: null, archived: false });
  assert.equal(none.includes("Rename this conversation"), false);
  assert.equal(none.includes("Admin"), false);
  assert.ok(none.includes("Use the light theme"));
  const pinned = session("a", { pinned: true, archived: true });
  const some = named({ session: pinned, dark: false, admin: "/admin/", archived: true });
  for (const label of ["Unpin this conversation", "Put this conversation back into the list"]) {
    assert.ok(some.includes(label), label);
  }
  assert.ok(some.includes("Admin"));
  const menu = sessionMenu(pinned, does, () => {}).map((one) => one.label);
  assert.deepEqual(menu, [
    "Rename", "Unpin", "Copy link", "Export as Markdown", "Export as JSONL", "Back to the list",
    "Delete conversation",
  ]);
  assert.equal(headMenu(sessionMenu(pinned, does, () => {}), () => {}).at(-2).icon, "text-search");
});

test("it tells shortcuts apart by what is printed on the keys", () => {
  const event = (key, code, held = {}) => ({
    key, code, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...held,
  });
  const names = (one) => SHORTCUTS.filter(({ keys }) => pressed(one, keys)).map(({ name }) => name);
  const ctrl = { ctrlKey: true };
  assert.deepEqual(names(event("k", "KeyK", ctrl)), ["palette"]);
  assert.deepEqual(names(event("k", "KeyV", ctrl)), ["palette"]);
  assert.deepEqual(names(event("л", "KeyK", { metaKey: true })), ["palette"]);
  assert.deepEqual(names(event("k", "KeyK")), []);
  assert.deepEqual(names(event("O", "KeyO", { ...ctrl, shiftKey: true })), ["newChat"]);
  assert.deepEqual(names(event("/", "Digit7", { ...ctrl, shiftKey: true })), ["shortcuts"]);
  assert.deepEqual(names(event("ArrowUp", "ArrowUp", { altKey: true })), ["previousMessage"]);
  assert.deepEqual(names(event("Escape", "Escape", { shiftKey: true })), ["focusComposer"]);
  assert.deepEqual(names(event("Escape", "Escape")), []);
  assert.equal(keyLabel("Alt Up"), `${keyLabel("Alt")} ↑`);
});
