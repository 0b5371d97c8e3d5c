// What a person chose for this browser.

export class Preferences {
  #storage;

  constructor(storage) {
    this.#storage = storage;
  }

  /** Enter sends and Shift Enter breaks the line; false: the other way round. */
  get enterSends() {
    return this.#storage.getItem("hermes.enter") !== "breaks";
  }

  set enterSends(sends) {
    this.#storage.setItem("hermes.enter", sends ? "sends" : "breaks");
  }
}
