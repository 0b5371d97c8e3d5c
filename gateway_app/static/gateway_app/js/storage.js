// The browser's storage, or memory where it is forbidden or full: nothing here ever throws.

export class SafeStorage {
  #kept = new Map();
  #storage;

  constructor(storage) {
    this.#storage = storage;
  }

  getItem(name) {
    if (this.#kept.has(name)) return this.#kept.get(name);
    try {
      return this.#storage.getItem(name);
    } catch {
      return null;
    }
  }

  setItem(name, value) {
    try {
      this.#storage.setItem(name, value);
      this.#kept.delete(name);
    } catch {
      this.#kept.set(name, value);
    }
  }

  removeItem(name) {
    this.#kept.delete(name);
    try {
      this.#storage.removeItem(name);
    } catch {
      // Forbidden storage holds nothing to remove.
    }
  }
}

/** What a person typed and has not sent, per conversation. */
export class Drafts {
  #storage;
  #prefix;

  constructor(storage, prefix) {
    this.#storage = storage;
    this.#prefix = prefix;
  }

  get(conversation) {
    return this.#storage.getItem(this.#name(conversation)) ?? "";
  }

  set(conversation, text) {
    if (text === "") this.#storage.removeItem(this.#name(conversation));
    else this.#storage.setItem(this.#name(conversation), text);
  }

  #name(conversation) {
    return `${this.#prefix}.${conversation.startsWith("new:") ? "new" : conversation}`;
  }
}
