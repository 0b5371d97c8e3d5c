// The sheet of keyboard shortcuts, and the keys that stand on buttons.

import { make } from "./dom.js";
import { gettext } from "./i18n.js";
import { SHORTCUTS, keyLabel } from "./keys.js";

export class KeysSheet {
  #parts;
  #preferences;

  constructor(parts, preferences) {
    this.#parts = parts;
    this.#preferences = preferences;
    const { keysSheet, keysClose } = parts;
    keysClose.addEventListener("click", () => keysSheet.close());
    keysSheet.addEventListener("click", (event) => event.target === keysSheet && keysSheet.close());
  }

  open() {
    const { keysSheet, keysList } = this.#parts;
    const keys = [...SHORTCUTS, ...fieldKeys(this.#preferences.enterSends)];
    keysList.replaceChildren(...keys.map(row));
    if (!keysSheet.open) keysSheet.showModal();
  }
}

/** What the message field does with keys. */
function fieldKeys(enterSends) {
  return [
    { keys: enterSends ? "Enter" : "Shift Enter", does: gettext("Send the message") },
    { keys: enterSends ? "Shift Enter" : "Enter", does: gettext("New line") },
    { keys: "Ctrl Enter", does: gettext("Send now, while an answer runs") },
    { keys: "Up", does: gettext("Edit the last message, from the empty field") },
    { keys: "Esc Esc", does: gettext("Stop the answer") },
  ];
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
