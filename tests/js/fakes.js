// A clock that a test moves by hand, a socket that a test answers, and a server's log of events.

export class FakeClock {
  time = 1_000_000;
  #timers = new Map();
  #next = 1;
  random = () => 0.5;

  now = () => this.time;

  setTimeout = (work, delay) => {
    const id = this.#next++;
    this.#timers.set(id, { at: this.time + delay, work });
    return id;
  };

  clearTimeout = (id) => {
    this.#timers.delete(id);
  };

  /** Everything that falls due in the next `ms` runs, in order, each at its time. */
  async pass(ms) {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, timer]) => timer.at <= end);
      if (due.length === 0) break;
      const [id, timer] = due.reduce((one, other) => (other[1].at < one[1].at ? other : one));
      this.#timers.delete(id);
      this.time = Math.max(this.time, timer.at);
      timer.work();
      await settled();
    }
    this.time = end;
  }
}

/** Every promise that can go on has gone on. */
export function settled() {
  return new Promise((resolve) => setImmediate(resolve));
}

export class FakeSocket {
  sent = [];
  closed = false;

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.closed = true;
  }

  async open() {
    this.onopen();
    await settled();
  }

  async receive(frame) {
    this.onmessage({ data: JSON.stringify(frame) });
    await settled();
  }

  async end(code) {
    this.onclose({ code });
    await settled();
  }

  last(type) {
    return this.sent.findLast((frame) => frame.type === type);
  }

  count(type) {
    return this.sent.filter((frame) => frame.type === type).length;
  }

  reply(type, result) {
    return this.receive({ re: this.last(type).id, ok: true, result });
  }

  refuse(type, error) {
    return this.receive({ re: this.last(type).id, ok: false, error });
  }
}

export function fakeStorage() {
  const kept = new Map();
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => kept.set(name, value),
    removeItem: (name) => kept.delete(name),
  };
}

export const SESSION = "0192f000-0000-7000-8000-000000000001";
export const TURN = "turn-1";

export function message(id, position, fields = {}) {
  return {
    id,
    position,
    revision: position,
    kind: "assistant",
    state: "active",
    parts: [{ type: "text", text: `Text of ${id}` }],
    turnId: TURN,
    createdAt: "2026-11-30T10:00:00.000Z",
    ...fields,
  };
}

/** The log of one session: `add` gives the frame that a subscriber gets. */
export class Log {
  frames = [];
  messages = [];
  turns = [];
  queue = [];
  running = null;
  #seq = 10;

  get seq() {
    return this.#seq;
  }

  add(event, turnId = TURN) {
    const prev = this.#seq;
    this.#seq += 1;
    const frame = { kind: "event", sessionId: SESSION, turnId, seq: this.#seq, prev, event };
    this.frames.push(frame);
    this.#keep(event, turnId);
    return frame;
  }

  /** The snapshot at this moment, as the server reads it from its rows and its log. */
  snapshot() {
    return structuredClone({
      kind: "control",
      type: "snapshot",
      sessionId: SESSION,
      seq: this.#seq,
      revision: this.messages.length,
      session: { id: SESSION, title: this.title ?? "" },
      messages: this.messages,
      turns: this.turns.filter((turn) => turn.state !== "running"),
      hasMore: false,
      running: this.running,
      queue: this.queue,
      approvals: [],
    });
  }

  #keep(event, turnId) {
    if (event.type === "RUN_STARTED") this.running = { turnId, events: [] };
    this.running?.events.push(event);
    if (event.name === "hermes.message") {
      this.messages = [...this.messages.filter((row) => row.id !== event.value.id), event.value];
    }
    if (event.name === "hermes.queue") this.queue = event.value.queue;
    if (event.name === "hermes.title") this.title = event.value.title;
    if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") this.#end(event, turnId);
  }

  #end(event, turnId) {
    const own = event.metadata?.hermes ?? {};
    if (own.retrying) return;
    this.running = null;
    const failed = event.type === "RUN_ERROR";
    this.turns.push({
      turnId,
      state: failed ? "failed" : event.outcome?.type === "cancelled" ? "stopped" : "completed",
      ...(own.cache && { verdict: own.cache.verdict, reason: own.cache.reason, revision: own.cache.revision }),
      ...(event.usage && { usage: event.usage[0] }),
      ...(own.durationMs && { durationMs: own.durationMs }),
      ...(failed && { error: { code: event.code, message: event.message } }),
    });
  }
}

export const custom = (name, value) => ({ type: "CUSTOM", name: `hermes.${name}`, value });

export const FINISHED = {
  type: "RUN_FINISHED",
  outcome: { type: "success" },
  usage: [{ inputTokens: 100, cachedInputTokens: 90, outputTokens: 5 }],
  metadata: {
    hermes: {
      cache: { verdict: "reuse", reason: "", baseline: 3, revision: 4 },
      durationMs: 900,
    },
  },
};
