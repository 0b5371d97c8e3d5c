// Acknowledgements owed to the server: every 64 event frames or every second, whichever is first.

const FRAMES = 64;
const DELAY_MS = 1000;

export class Acks {
  #send;
  #clock;
  #owed = {};
  #frames = 0;
  #timer = null;

  /** `send(acks)` gets {sessionId: seq}; `clock` has setTimeout and clearTimeout. */
  constructor(send, clock) {
    this.#send = send;
    this.#clock = clock;
  }

  note(sessionId, seq) {
    this.#owed[sessionId] = seq;
    this.#frames += 1;
    if (this.#frames >= FRAMES) this.flush();
    else this.#timer ??= this.#clock.setTimeout(() => this.flush(), DELAY_MS);
  }

  flush() {
    const owed = this.#owed;
    const any = this.#frames > 0;
    this.reset();
    if (any) this.#send(owed);
  }

  /** Nothing is owed: a new socket starts a new account. */
  reset() {
    this.#owed = {};
    this.#frames = 0;
    if (this.#timer !== null) this.#clock.clearTimeout(this.#timer);
    this.#timer = null;
  }
}
