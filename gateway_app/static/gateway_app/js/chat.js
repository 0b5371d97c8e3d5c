// The page: makes every part once and passes what happens from one to the other.

import { Actions } from "./actions.js";
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { partsOf } from "./dom.js";
import { Editing } from "./editing.js";
import { Feeds } from "./feeds.js";
import { Menu } from "./menu.js";
import { Models } from "./models.js";
import { Outbox, movedTo } from "./outbox.js";
import { Preferences } from "./preferences.js";
import { Screen } from "./screen.js";
import { Sender, isNew } from "./sender.js";
import { SessionActions } from "./session_actions.js";
import { Sessions } from "./sessions.js";
import { Shell } from "./shell.js";
import { Seen } from "./seen.js";
import { Drafts, SafeStorage } from "./storage.js";
import { Unconfirmed } from "./unconfirmed.js";
import { WORDS } from "./words.js";

const page = JSON.parse(document.getElementById("page").textContent);
const parts = partsOf(document.body);
const clock = {
  now: () => Date.now(),
  setTimeout: (...given) => setTimeout(...given),
  clearTimeout: (timer) => clearTimeout(timer),
  random: () => Math.random(),
};
const storage = new SafeStorage(localStorage);
const outbox = new Outbox(storage, `hermes.outbox.${page.user.id}`);
const model = {
  page,
  outbox,
  drafts: new Drafts(storage, `hermes.draft.${page.user.id}`),
  unconfirmed: new Unconfirmed(outbox),
  editing: new Editing(),
  preferences: new Preferences(storage),
  whenBusy: ["queue"],
  everReady: false,
  updated: false,
  /** A connection was lost, and what waited meanwhile is still being sent. */
  lost: false,
  logIn: () => location.assign(`${page.urls.login}?next=${encodeURIComponent(location.pathname)}`),
};
let wasReady = false;
const screen = new Screen(model, parts);
const actions = new Actions(model, screen);
const sessionActions = new SessionActions(model, screen);

model.conversation = new Conversation({
  waiting: () => outbox.entries.findLast((entry) => isNew(entry.conversation))?.conversation,
  onChange: showCurrent,
});
model.connection = new Connection({
  clock,
  openSocket: (protocol) => new WebSocket(page.socketPath, protocol),
  isOnline: () => navigator.onLine,
  checkLogin,
  onState: connectionChanged,
  onReady: ready,
  onFrame: (frame) => model.sessions.accept(frame) || model.feeds.accept(frame),
});
model.models = new Models({
  connection: model.connection,
  storage,
  name: `hermes.choice.${page.user.id}`,
  onChange: () => screen.draw(),
});
model.feeds = new Feeds({ connection: model.connection, clock, onChange: feedChanged });
model.sessions = new Sessions({
  connection: model.connection,
  clock,
  onChange: listChanged,
});
const seen = new Seen({ sessions: model.sessions, isVisible: () => !document.hidden });
model.sender = new Sender({
  connection: model.connection,
  outbox,
  clock,
  withLock: (work) => (navigator.locks ? navigator.locks.request("hermes.outbox", work) : work()),
  maxQueued: () => page.limits.maxQueued,
  onSent: sent,
  onElsewhere: (entries) => model.unconfirmed.confirmedElsewhere(entries, clock.now()),
  onChange: () => {
    if (outbox.next() === null && model.connection.ready) model.lost = false;
    screen.draw();
  },
});

function showCurrent() {
  const { sessionId } = model.conversation;
  if (sessionId !== null) model.feeds.open(sessionId);
  shell.switched();
  screen.switched();
  look();
  shell.show();
}

function connectionChanged(state) {
  if (wasReady && state.phase === "waiting") {
    screen.say(state.online ? WORDS.reconnecting : WORDS.offline);
  }
  if (wasReady && state.phase === "login") screen.alarmQuietly(WORDS.loginOver);
  if (state.phase === "refused") screen.alarmQuietly(state.sentence);
  if (wasReady && state.phase !== "ready") model.lost = true;
  wasReady = state.phase === "ready";
  screen.draw();
}

function ready(hello) {
  // The page was made by one release; a server of another one has other scripts.
  model.updated = hello.server.release !== page.release;
  if (model.everReady) screen.say(WORDS.back);
  model.everReady = true;
  model.models.agents = hello.agents ?? [];
  model.whenBusy = hello.whenBusy ?? ["queue"];
  Object.assign(page.limits, hello.limits);
  window.dispatchEvent(new Event("reachable"));
  model.feeds.resume();
  model.sessions.refresh();
  if (outbox.next() === null) model.lost = false;
  model.sender.pump();
  // Last: it may ask providers, and a socket's commands wait for each other.
  model.models.refresh();
}

function feedChanged(sessionId) {
  const state = model.feeds.get(sessionId);
  if (state.session) model.sessions.note(state.session);
  screen.changed(sessionId);
  look();
}

function listChanged() {
  look();
  shell.show();
  screen.draw();
}

function look() {
  seen.look(model.feeds.get(model.conversation.sessionId));
}

function sent(entry, result) {
  const { conversation, drafts, sessions, unconfirmed } = model;
  unconfirmed.confirmed(entry, result);
  if (!isNew(entry.conversation)) return;
  if (conversation.current === entry.conversation) {
    drafts.set(result.sessionId, drafts.get(entry.conversation));
    drafts.set(entry.conversation, "");
    conversation.opened(result.sessionId);
    screen.expect(result.sessionId, result.turnId);
  }
  sessions.refresh();
}

/** Whether the door would let us in; asked when a socket did not open. */
async function checkLogin() {
  try {
    const answer = await fetch(page.urls.me, { headers: { Accept: "application/json" } });
    return answer.status === 401 ? "login" : "ok";
  } catch {
    return "unreachable";
  }
}

const menu = new Menu(parts.menu);
const shell = new Shell({ model, parts, screen, actions, sessionActions, menu, storage });
screen.attach(actions, shell.listActions, menu);
for (const name of ["online", "offline", "pageshow"]) {
  window.addEventListener(name, () => model.connection.probe());
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  model.connection.probe();
  model.sessions.refresh();
  look();
});
window.addEventListener("storage", (event) => {
  if (event.key?.startsWith(`hermes.draft.${page.user.id}.`)) screen.draftChanged();
  if (event.key !== `hermes.outbox.${page.user.id}`) return;
  const { conversation } = model;
  const opened = movedTo(conversation.current, event.oldValue, event.newValue);
  if (opened !== null) conversation.opened(opened);
  model.unconfirmed.confirmedElsewhere(outbox.reload(), clock.now());
  model.sender.pump();
  screen.draw();
});

showCurrent();
model.connection.connect();
screen.home();
