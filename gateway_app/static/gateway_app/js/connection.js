// One socket that stays up: hello, replies, silence, reconnecting. It knows no session.
//
// Phases: connecting -> ready -> (lost) waiting -> connecting ...
//         login: the credential ended; refused: the server will not have this page.
// A browser without a network still reaches a server on its own machine, so `online` decides the
// words and wakes us up, never whether to try.

import { Acks } from "./acks.js";
import { retryDelay } from "./backoff.js";
import { CLOSE, CommandError, ConnectionLost, SUBPROTOCOL, command, parseFrame } from "./protocol.js";
import { WORDS } from "./words.js";

/** How long a server that was asked for a sign of life may take. */
const GRACE_MS = 10_000;
const CHECK_MS = 5_000;
const HELLO_MS = 10_000;
const PROBE_MS = 5_000;

export class Connection {
  #options;
  #clock;
  #acks;
  #socket = null;
  #pending = new Map();
  #nextId = 1;
  #attempt = 0;
  #heardAt = 0;
  #timer = null;
  #watch = null;
  #heartbeatMs = 25_000;
  state = { phase: "connecting", draining: false, storing: true, retryAt: null, online: true };

  /**
   * options: openSocket(subprotocol) -> WebSocket; clock {now, setTimeout, clearTimeout, random};
   * isOnline() -> bool; checkLogin() -> Promise<"ok" | "login" | "unreachable">;
   * onState(state), onReady(hello), onFrame(frame).
   */
  constructor(options) {
    this.#options = options;
    this.#clock = options.clock;
    this.#acks = new Acks((acks) => this.#write(command.ack(acks)), options.clock);
  }

  get ready() {
    return this.state.phase === "ready";
  }

  /** Tries now, whatever was planned. Nothing happens while a socket is open or opening. */
  connect() {
    if (this.#socket !== null || this.state.phase === "login") return;
    this.#cancelTimer();
    this.#enter("connecting");
    this.#heardAt = this.#clock.now();
    const socket = this.#options.openSocket(SUBPROTOCOL);
    this.#socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#hello();
    };
    socket.onmessage = (message) => this.#receive(message.data);
    socket.onclose = (event) => this.#lost(event.code, opened);
    this.#watch = this.#clock.setTimeout(() => this.#checkSilence(), CHECK_MS);
  }

  /** The reply's result. Rejects with CommandError or ConnectionLost. */
  request(body) {
    if (!this.ready) return Promise.reject(new ConnectionLost());
    return this.#ask(body);
  }

  noteEvent(sessionId, seq) {
    this.#acks.note(sessionId, seq);
  }

  /** The network changed or the page woke up: a dead socket is found within seconds. */
  async probe() {
    if (!this.ready) return this.connect();
    const socket = this.#socket;
    const timer = this.#clock.setTimeout(() => socket === this.#socket && this.drop(), PROBE_MS);
    await this.#ask(command.ping(this.#clock.now())).catch(() => {});
    this.#clock.clearTimeout(timer);
  }

  /** Gives up the socket, as if it had closed. */
  drop() {
    const socket = this.#socket;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#lost(null, true);
  }

  #ask(body) {
    return new Promise((resolve, reject) => {
      const id = String(this.#nextId++);
      this.#pending.set(id, { resolve, reject });
      this.#write({ id, ...body });
    });
  }

  async #hello() {
    const socket = this.#socket;
    const timer = this.#clock.setTimeout(() => this.drop(), HELLO_MS);
    try {
      const hello = await this.#ask(command.hello("web"));
      if (socket !== this.#socket) return;
      this.#attempt = 0;
      this.#heartbeatMs = hello.limits?.heartbeatMs ?? this.#heartbeatMs;
      this.#enter("ready", { draining: false, storing: hello.server?.storing ?? true });
      this.#options.onReady(hello);
    } catch (error) {
      if (!(error instanceof CommandError)) return;
      if (error.retryable) this.drop();
      else this.#refuse(error.message);
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }

  #receive(text) {
    this.#heardAt = this.#clock.now();
    const frame = parseFrame(text);
    if (frame === null) return;
    if (frame.kind === "reply") return this.#settle(frame);
    if (frame.type === "draining") return this.#enter(this.state.phase, { draining: true });
    if (frame.type === "storage") return this.#enter(this.state.phase, { storing: frame.storing });
    if (frame.type === "revoked") return this.#end();
    this.#options.onFrame(frame);
  }

  #settle(frame) {
    const pending = this.#pending.get(frame.re);
    this.#pending.delete(frame.re);
    if (pending === undefined) return;
    if (frame.ok) pending.resolve(frame.result);
    else pending.reject(new CommandError(frame.error));
  }

  async #lost(code, opened) {
    this.#close();
    if (code === CLOSE.revoked) return this.#end();
    if (code === CLOSE.forbidden) {
      return this.#refuse(WORDS.refused);
    }
    if (!opened) {
      this.#enter("waiting");
      const login = await this.#options.checkLogin();
      if (this.#socket !== null) return;
      if (login === "login") return this.#end();
    }
    this.#plan();
  }

  #plan() {
    const delay = retryDelay(this.#attempt++, this.#clock.random);
    this.#timer = this.#clock.setTimeout(() => this.connect(), delay);
    this.#enter("waiting", { retryAt: this.#clock.now() + delay });
  }

  /** A half-open socket never closes by itself: silence is the only sign. */
  #checkSilence() {
    const silent = this.#clock.now() - this.#heardAt;
    if (silent >= this.#heartbeatMs + GRACE_MS) return this.drop();
    if (silent >= this.#heartbeatMs && this.ready) {
      this.#ask(command.ping(this.#clock.now())).catch(() => {});
    }
    this.#watch = this.#clock.setTimeout(() => this.#checkSilence(), CHECK_MS);
  }

  #close() {
    this.#socket = null;
    this.#clock.clearTimeout(this.#watch);
    this.#acks.reset();
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of pending) reject(new ConnectionLost());
  }

  #end() {
    this.#shut();
    this.#enter("login");
  }

  #refuse(sentence) {
    this.#shut();
    this.#enter("refused", { sentence });
  }

  #shut() {
    const socket = this.#socket;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#close();
  }

  #enter(phase, more = {}) {
    const online = this.#options.isOnline();
    const { draining, storing } = this.state;
    this.state = { draining, storing, retryAt: null, ...more, phase, online };
    this.#options.onState(this.state);
  }

  #cancelTimer() {
    if (this.#timer !== null) this.#clock.clearTimeout(this.#timer);
    this.#timer = null;
  }

  #write(frame) {
    this.#socket?.send(JSON.stringify(frame));
  }
}
