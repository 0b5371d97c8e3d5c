// Draws the model: at most once a frame, whatever happened in between.

import { Announcer, announcement } from "./announcer.js";
import { Dock } from "./dock.js";
import { Head } from "./head.js";
import { gettext } from "./i18n.js";
import { threadItems } from "./items.js";
import { Sidebar } from "./sidebar.js";
import { emptySession } from "./store.js";
import { Strip, stripWords } from "./strip.js";
import { Thread } from "./thread.js";
import { Toast } from "./toast.js";
import { WORDS } from "./words.js";

export class Screen {
  #model;
  #parts;
  #views;
  #planned = false;
  #shown = null;
  #followNext = false;
  #before = null;
  #hintTimer = null;

  constructor(model, parts) {
    this.#model = model;
    this.#parts = parts;
  }

  /** Makes the views. `actions` is what their buttons do. */
  attach(actions, listActions, menu) {
    const parts = this.#parts;
    this.#views = {
      head: new Head(parts, listActions),
      thread: new Thread(parts, actions),
      sidebar: new Sidebar(parts, listActions),
      dock: new Dock(parts, this.#model, actions, menu),
      strip: new Strip(parts, {
        now: () => this.#model.connection.connect(),
        reload: () => location.reload(),
        login: () => this.#model.logIn(),
      }),
      toast: new Toast(parts),
      announcer: new Announcer(parts),
    };
  }

  draw() {
    if (this.#planned) return;
    this.#planned = true;
    // A page in the background gets no animation frames, and needs none until it is seen.
    requestAnimationFrame(() => {
      this.#planned = false;
      this.#draw();
    });
  }

  /** A session changed: what a screen reader should know of it is told at once. */
  changed(sessionId) {
    if (sessionId === this.#model.conversation.sessionId) {
      const state = this.#model.feeds.get(sessionId);
      this.#views.announcer.tell(announcement(this.#before, state));
      this.#before = state;
    }
    this.draw();
  }

  /** Another conversation is open: what it says from now on is news, not what it had. */
  switched() {
    this.#before = this.#model.feeds.get(this.#model.conversation.sessionId);
    this.draw();
  }

  /** A turn that opened its conversation: its end is told even if it came before we looked. */
  expect(sessionId, turnId) {
    this.#before = { sessionId, run: null, expected: turnId };
  }

  follow() {
    this.#followNext = true;
    this.draw();
  }

  /**
   * The composer is home: where the person goes on after a choice. A touch screen would raise its
   * keyboard over the page, so there the person decides.
   */
  home() {
    if (window.matchMedia("(pointer: fine)").matches) this.#views.dock.composer.focus();
  }

  refuse(sentence) {
    this.#views.dock.composer.hint(sentence, true);
    this.#views.announcer.tell({ alert: sentence });
  }

  /** Words under the field; with `forMs` they go by themselves. */
  hint(words, forMs = null) {
    this.#views.dock.composer.hint(words);
    clearTimeout(this.#hintTimer);
    if (forMs !== null) this.#hintTimer = setTimeout(() => this.hint(""), forMs);
  }

  alarm(sentence) {
    this.#views.toast.show(sentence, null);
    this.#views.announcer.tell({ alert: sentence });
  }

  /** True if it was done; else the person is told why not. */
  async attempt(work) {
    try {
      await work();
      return true;
    } catch (error) {
      this.alarm(error.message);
      return false;
    }
  }

  /** For who does not see the strip, which says it too. */
  alarmQuietly(sentence) {
    this.#views.announcer.tell({ alert: sentence });
  }

  say(words) {
    this.#views.announcer.tell({ polite: words });
  }

  offer(words, undo) {
    this.#views.toast.show(words, undo);
    this.say(words);
  }

  takeBack(text) {
    const { composer } = this.#views.dock;
    composer.fill([text, composer.text].filter(Boolean).join("\n\n"));
    this.#model.drafts.set(this.#model.conversation.current, composer.text);
    composer.focus();
    this.draw();
  }

  /** The words of a message that is edited stand in the field. */
  editBegan(text) {
    const { composer } = this.#views.dock;
    composer.fill(text);
    composer.focus();
    this.say(WORDS.editing);
    this.draw();
  }

  /** What was written there before is back. */
  editEnded() {
    const { composer } = this.#views.dock;
    composer.fill(this.#model.drafts.get(this.#model.conversation.current));
    composer.focus();
    this.draw();
  }

  editQueued() {
    this.#views.dock.editQueued();
  }

  /** The menu of models, at a button of the thread. */
  openModels(button, choose) {
    this.#views.dock.openModels(button, choose);
  }

  draftChanged() {
    this.#views.dock.draftChanged();
  }

  /** Where the title stands in the list, it becomes a field. */
  startRename(sessionId) {
    this.#views.sidebar.startRename(sessionId);
  }

  /** The same for the title over the open conversation. */
  renameOpen() {
    this.#views.head.startRename();
  }

  #draw() {
    const { conversation, feeds, connection, page, unconfirmed } = this.#model;
    const { current, sessionId } = conversation;
    const state = feeds.get(sessionId) ?? emptySession(sessionId);
    const { bubbles, queued } = unconfirmed.of(current, state, connection.ready, Date.now());
    const others = this.#views.dock.othersThan(state);
    const items = threadItems(state, bubbles, connection.ready, others, page.user.id);
    const switched = this.#shown !== current;
    this.#views.head.show(this.#headOf(state));
    this.#drawList(sessionId);
    const drawn = switched || this.#followNext || !feeds.isReading(sessionId);
    if (drawn) this.#drawThread(state, items);
    this.#shown = current;
    this.#views.dock.show(state, this.#agentName(state), queued);
    this.#drawConnection();
    if (switched || this.#followNext) this.#views.thread.follow();
    this.#followNext = false;
  }

  #drawThread(state, items) {
    const empty = items.length === 0 && (state.sessionId === null || state.loaded);
    const { missing } = state;
    document.body.classList.toggle("empty", empty && !missing);
    this.#parts.greeting.hidden = !empty || Boolean(missing);
    this.#parts.missing.hidden = !missing;
    const loading = state.sessionId !== null && !state.loaded && items.length === 0;
    this.#views.thread.show({ items, hasMore: state.hasMore, loading });
  }

  #headOf(state) {
    const known = state.session ?? this.#model.sessions.find(state.sessionId);
    return {
      sessionId: state.sessionId,
      title: state.missing ? WORDS.missing : known?.title || WORDS.untitled,
      session: state.session,
      running: state.run !== null,
      name: state.missing ? null : this.#agentName(state),
    };
  }

  #agentName(state) {
    const session = this.#model.sessions.find(state.sessionId) ?? state.session;
    return this.#model.models.agentOf(session)?.name ?? gettext("Assistant");
  }

  #drawList(current) {
    const { sessions } = this.#model;
    this.#views.sidebar.show({
      sessions: sessions.list,
      archived: sessions.archived,
      hasArchived: sessions.hasArchived,
      loaded: sessions.loaded,
      current,
      hasMore: sessions.hasMore,
    });
  }

  #drawConnection() {
    const { connection, outbox, everReady, updated } = this.#model;
    const waiting = outbox.entries.filter((entry) => entry.failed === null).length;
    const facts = { waiting, everReady, updated, lost: this.#model.lost };
    this.#views.strip.show(stripWords(connection.state, facts));
    this.#views.strip.showAccount(connection.state);
  }
}
