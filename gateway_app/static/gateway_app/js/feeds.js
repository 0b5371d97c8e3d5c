// The sessions this page follows: subscribing, catching up after a loss, older pages.

import { CommandError, command } from "./protocol.js";
import {
  applyEvent,
  applyHistory,
  applyQueue,
  applySnapshot,
  emptySession,
  isBehind,
  withoutBehind,
} from "./store.js";

const KEPT = 8;
const AGAIN_MS = 1000;

export class Feeds {
  #options;
  #states = new Map();
  #syncing = new Set();
  #loading = new Map();
  #behind = new Set();
  #current = null;

  /** options: connection, clock, onChange(sessionId). */
  constructor(options) {
    this.#options = options;
  }

  get(sessionId) {
    return this.#states.get(sessionId) ?? null;
  }

  all() {
    return [...this.#states.values()];
  }

  /** The session on the page. It is followed, and never let go while it is there. */
  open(sessionId) {
    this.#current = sessionId;
    this.follow(sessionId);
  }

  /** Follows the session from now on; the least recently followed idle one may be let go. */
  follow(sessionId) {
    const state = this.#states.get(sessionId);
    const known = state !== undefined && !state.missing;
    this.#states.delete(sessionId);
    this.#states.set(sessionId, known ? state : emptySession(sessionId));
    if (!known) this.#subscribe(sessionId);
    this.#prune();
  }

  forget(sessionId) {
    if (!this.#states.delete(sessionId)) return;
    this.#options.connection.request(command.unsubscribe(sessionId)).catch(() => {});
  }

  /** A new socket knows of no subscription: each is made again from where it was. */
  resume() {
    this.#syncing.clear();
    for (const sessionId of this.#states.keys()) this.#subscribe(sessionId);
  }

  accept(frame) {
    const state = this.#states.get(frame.sessionId);
    if (state === undefined) return;
    if (frame.kind === "event") this.#acceptEvent(state, frame);
    else if (frame.type === "snapshot") {
      this.#put(applySnapshot(state, frame));
      this.#readBehind(frame.sessionId);
    }
  }

  setQueue(sessionId, queue) {
    const state = this.#states.get(sessionId);
    if (state !== undefined && Array.isArray(queue)) this.#put(applyQueue(state, queue));
  }

  /** The page before the oldest known row; true if it came. Nothing happens while one is on its way. */
  async loadOlder(sessionId) {
    const state = this.#states.get(sessionId);
    if (!state?.hasMore || this.#loading.has(sessionId)) return false;
    const coming = this.#readOlder(sessionId, state.cursor);
    this.#loading.set(sessionId, coming);
    return coming;
  }

  async #readOlder(sessionId, cursor) {
    try {
      const asked = command.history(sessionId, cursor);
      const result = await this.#options.connection.request(asked);
      const now = this.#states.get(sessionId);
      if (now?.cursor === cursor) this.#put(applyHistory(now, result));
      return true;
    } catch {
      return false; // The connection says what is wrong.
    } finally {
      this.#loading.delete(sessionId);
    }
  }

  /** Its older rows are being read again: what is drawn stands until they are there. */
  isReading(sessionId) {
    return this.#behind.has(sessionId);
  }

  /** What was in sight before a new reading is read again, page by page; let go if it does not come. */
  async #readBehind(sessionId) {
    if (this.#behind.has(sessionId) || !this.#isBehind(sessionId)) return;
    this.#behind.add(sessionId);
    if (this.#loading.has(sessionId)) await this.#loading.get(sessionId);
    while (this.#isBehind(sessionId) && (await this.loadOlder(sessionId)));
    this.#behind.delete(sessionId);
    const state = this.#states.get(sessionId);
    if (state !== undefined) this.#put(withoutBehind(state));
  }

  #isBehind(sessionId) {
    const state = this.#states.get(sessionId);
    return state !== undefined && isBehind(state);
  }

  #acceptEvent(state, frame) {
    const { connection, clock } = this.#options;
    connection.noteEvent(frame.sessionId, frame.seq);
    const [next, outcome] = applyEvent(state, { ...frame, at: clock.now() });
    if (outcome === "old") return;
    if (outcome === "applied") return this.#put(next);
    if (outcome === "reread") this.#put({ ...next, seq: null });
    this.#subscribe(frame.sessionId);
  }

  async #subscribe(sessionId) {
    const { connection, clock } = this.#options;
    const state = this.#states.get(sessionId);
    if (!connection.ready || state === undefined || this.#syncing.has(sessionId)) return;
    this.#syncing.add(sessionId);
    try {
      await connection.request(command.subscribe(sessionId, state.seq ?? undefined));
      this.#syncing.delete(sessionId);
    } catch (error) {
      this.#syncing.delete(sessionId);
      if (!(error instanceof CommandError)) return;
      if (error.retryable) {
        const delay = error.retryAfterMs ?? AGAIN_MS;
        clock.setTimeout(() => this.#subscribe(sessionId), delay);
      } else {
        this.#put({ ...emptySession(sessionId), loaded: true, missing: true });
      }
    }
  }

  #put(state) {
    this.#states.set(state.sessionId, state);
    this.#options.onChange(state.sessionId);
  }

  #prune() {
    for (const [sessionId, state] of this.#states) {
      if (this.#states.size <= KEPT) return;
      if (sessionId !== this.#current && state.run === null) this.forget(sessionId);
    }
  }
}
