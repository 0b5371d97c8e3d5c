// Draws the model: at most once a frame, whatever happened in between.

import { Announcer, announcement } from "./announcer.js";
import { Composer } from "./composer.js";
import { Head } from "./head.js";
import { threadItems } from "./items.js";
import { QueuePanel, queueItems } from "./queue_panel.js";
import { Sidebar } from "./sidebar.js";
import { emptySession, sessionMark } from "./store.js";
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
  attach(actions, listActions) {
    const parts = this.#parts;
    this.#views = {
      head: new Head(parts, actions),
      thread: new Thread(parts, actions),
      queue: new QueuePanel(parts, actions),
      sidebar: new Sidebar(parts, listActions),
      composer: new Composer(parts, {
        send: (text) => actions.send(text),
        stop: () => actions.stop(),
        draft: (text) => this.#model.drafts.set(this.#model.conversation.current, text),
      }),
      strip: new Strip(parts, {
        now: () => this.#model.connection.connect(),
        reload: () => location.reload(),
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
    if (window.matchMedia("(pointer: fine)").matches) this.#views.composer.focus();
  }

  refuse(sentence) {
    this.#views.composer.hint(sentence, true);
    this.#views.announcer.tell({ alert: sentence });
  }

  /** Words under the field; with `forMs` they go by themselves. */
  hint(words, forMs = null) {
    this.#views.composer.hint(words);
    clearTimeout(this.#hintTimer);
    if (forMs !== null) this.#hintTimer = setTimeout(() => this.hint(""), forMs);
  }

  alarm(sentence) {
    this.#views.toast.show(sentence, null);
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
    const { composer } = this.#views;
    composer.fill([text, composer.text].filter(Boolean).join("\n\n"));
    this.#model.drafts.set(this.#model.conversation.current, composer.text);
    composer.focus();
    this.draw();
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
    const { conversation, feeds, connection, unconfirmed } = this.#model;
    const { current, sessionId } = conversation;
    const state = feeds.get(sessionId) ?? emptySession(sessionId);
    const { bubbles, queued } = unconfirmed.of(current, state, connection.ready);
    const items = threadItems(state, bubbles, connection.ready);
    const switched = this.#shown !== current;
    this.#views.head.show(this.#headOf(state));
    this.#drawList(sessionId);
    this.#drawThread(state, items);
    this.#views.queue.show(queueItems(state.queue, queued), connection.ready);
    this.#drawComposer(state, current);
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
    const { agents } = this.#model;
    const slug = state.session?.agent;
    const agent = agents.find((known) => (known.slug ?? known.id) === slug) ?? agents[0];
    return agent?.name ?? "Assistant";
  }

  #drawList(current) {
    const { sessions, feeds } = this.#model;
    this.#views.sidebar.show({
      sessions: sessions.list,
      loaded: sessions.loaded,
      current,
      hasMore: sessions.hasMore,
      marks: (sessionId) => {
        const state = feeds.get(sessionId);
        if (state?.loaded) return sessionMark(state);
        return sessions.find(sessionId)?.running ? "running" : "idle";
      },
    });
  }

  #drawComposer(state, current) {
    const { connection, drafts } = this.#model;
    if (this.#shown !== current) {
      this.#shown = current;
      this.#views.composer.fill(drafts.get(current));
    }
    this.#views.composer.show({
      running: state.run !== null,
      connected: connection.ready,
      name: this.#agentName(state),
      missing: Boolean(state.missing),
    });
  }

  #drawConnection() {
    const { connection, outbox, everReady, updated } = this.#model;
    const waiting = outbox.entries.filter((entry) => entry.failed === null).length;
    this.#views.strip.show(stripWords(connection.state, { waiting, everReady, updated }));
    this.#views.strip.showAccount(connection.state);
  }
}
