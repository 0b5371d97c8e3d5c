// Search and commands: a combobox over a list box, in a dialog. The focus stays in the field; the
// list's current option is named by aria-activedescendant.

import { icon, make, setText } from "./dom.js";
import { gettext, interpolate } from "./i18n.js";
import { keyLabel } from "./keys.js";
import { around, paletteGroups } from "./palette_entries.js";

const WAIT_MS = 120;
const FOUND = 8;

export class Palette {
  #parts;
  #source;
  #does;
  #found = null;
  #asked = 0;
  #timer = null;
  #entries = [];
  #options = [];
  #at = 0;

  /**
   * `source()` gives {sessions, commands, canFind}; `search(text, limit)` asks the server;
   * `does`: open(id), find(text), ask(text).
   */
  constructor(parts, { source, search, does }) {
    this.#parts = parts;
    this.#source = source;
    this.#does = does;
    this.search = search;
    const { palette, paletteField, paletteClose } = parts;
    paletteField.addEventListener("input", () => this.#typed());
    paletteField.addEventListener("keydown", (event) => this.#key(event));
    paletteClose.addEventListener("click", () => palette.close());
    palette.addEventListener("click", (event) => event.target === palette && palette.close());
    palette.addEventListener("close", () => clearTimeout(this.#timer));
  }

  toggle() {
    const { palette, paletteField } = this.#parts;
    if (palette.open) return palette.close();
    if (document.querySelector("dialog:modal:not(.drawer)")) return undefined;
    paletteField.value = "";
    this.#found = null;
    palette.showModal();
    paletteField.focus();
    return this.#draw();
  }

  #typed() {
    this.#found = null;
    this.#draw();
    clearTimeout(this.#timer);
    const text = this.#parts.paletteField.value.trim();
    const asked = ++this.#asked;
    if (text === "" || text.startsWith(">")) return;
    this.#timer = setTimeout(async () => {
      const found = await this.search(text, FOUND);
      if (asked !== this.#asked || found === null) return;
      this.#found = found;
      this.#drawAround(this.#entries[this.#at]);
    }, WAIT_MS);
  }

  #draw() {
    const { paletteField, paletteList, paletteNone } = this.#parts;
    const typed = paletteField.value;
    const text = typed.trim();
    const state = { ...this.#source(), typed, found: this.#found, now: new Date() };
    const groups = paletteGroups(state, this.#does);
    this.#entries = groups.flatMap(({ entries }) => entries);
    this.#options = [];
    const marked = typed.startsWith(">") ? typed.slice(1).trim() : text;
    paletteList.replaceChildren(...groups.map((group) => this.#group(group, marked)));
    const none = this.#found?.length === 0 && !typed.startsWith(">");
    const words = gettext("Nothing found for “%s” in titles.");
    setText(paletteNone, none ? interpolate(words, [text]) : "");
    paletteNone.hidden = !none;
    this.#choose(0);
  }

  /** What the person went to stays chosen; who did not move is on the best match. */
  #drawAround({ label, href }) {
    const moved = this.#at > 0;
    this.#draw();
    const at = this.#entries.findIndex((entry) => entry.label === label && entry.href === href);
    if (moved && at >= 0) this.#choose(at);
  }

  #group({ name, entries }, text) {
    const group = make("div", "palette-group");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", name);
    const head = make("div", "palette-name", name);
    head.setAttribute("aria-hidden", "true");
    group.append(head, ...entries.map((entry) => this.#option(entry, text)));
    return group;
  }

  #option(entry, text) {
    const at = this.#options.length;
    const option = make("div", "palette-option");
    option.id = `palette-option-${at}`;
    option.setAttribute("role", "option");
    const name = make("bdi");
    const [before, match, after] = around(entry.label, text);
    name.append(before, ...(match ? [make("mark", "", match)] : []), after);
    const title = make("span", "palette-title");
    title.append(name);
    const words = make("span", "palette-words");
    words.append(title);
    if (entry.detail) words.append(make("span", "palette-detail", entry.detail));
    option.append(icon(entry.icon), words);
    if (entry.keys) option.append(make("kbd", "", keyLabel(entry.keys)));
    if (entry.end) option.append(make("bdi", "palette-end", entry.end));
    option.addEventListener("mousemove", () => this.#choose(at));
    option.addEventListener("click", (event) => {
      this.#run(entry, event.ctrlKey || event.metaKey);
    });
    this.#options.push(option);
    return option;
  }

  #choose(at) {
    const { paletteField } = this.#parts;
    this.#at = at;
    this.#options.forEach((option, place) =>
      option.setAttribute("aria-selected", String(place === at)),
    );
    const option = this.#options[at];
    if (!option) return paletteField.removeAttribute("aria-activedescendant");
    paletteField.setAttribute("aria-activedescendant", option.id);
    return option.scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    if (event.isComposing) return;
    const last = this.#options.length - 1;
    const moves = {
      ArrowDown: this.#at === last ? 0 : this.#at + 1,
      ArrowUp: this.#at === 0 ? last : this.#at - 1,
      Home: 0,
      End: last,
    };
    if (event.key in moves && !event.altKey && !event.shiftKey && last >= 0) {
      event.preventDefault();
      this.#choose(moves[event.key]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#run(this.#entries[this.#at], event.ctrlKey || event.metaKey);
    }
  }

  #run(entry, newTab) {
    if (!entry) return;
    this.#parts.palette.close();
    if (newTab && entry.href) window.open(entry.href, "_blank", "noopener");
    else entry.run();
  }
}
