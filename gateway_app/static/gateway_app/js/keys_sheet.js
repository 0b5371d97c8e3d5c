// The sheet of keyboard shortcuts, and the keys that stand on buttons.

import { make } from "./dom.js";
import { gettext } from "./i18n.js";
import { SHORTCUTS, keyLabel } from "./keys.js";

const ELSEWHERE = [
  { keys: "Enter", does: gettext("Send the message") },
  { keys: "Shift Enter", does: gettext("New line") },
  { keys: "Esc Esc", does: gettext("Stop the answer") },
];

export class KeysSheet {
  #sheet;

  constructor(parts) {
    this.#sheet = parts.keysSheet;
    parts.keysList.append(...[...SHORTCUTS, ...ELSEWHERE].map(row));
    parts.keysClose.addEventListener("click", () => this.#sheet.close());
    this.#sheet.addEventListener("click", (event) => {
      if (event.target === this.#sheet) this.#sheet.close();
    });
  }

  open() {
    if (!this.#sheet.open) this.#sheet.showModal();
  }
}

/** Every `<kbd data-keys>` of the page says its keys. */
export function labelKeys(root) {
  for (const kbd of root.querySelectorAll("kbd[data-keys]")) {
    kbd.textContent = keyLabel(kbd.dataset.keys);
  }
}

function row({ keys, does }) {
  const line = make("div");
  const dd = make("dd");
  dd.append(make("kbd", "", keyLabel(keys)));
  line.append(make("dt", "", does), dd);
  return line;
}
