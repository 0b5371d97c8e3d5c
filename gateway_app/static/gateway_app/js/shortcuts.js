// Keys that work anywhere on the page. No single letters; none while an input method composes, and
// none but the palette's while a dialog is open.

import { SHORTCUTS, pressed } from "./keys.js";

const TWICE_MS = 2000;

/** `actions`: one for each name in SHORTCUTS; and running() -> bool, stop(), hintStop(forMs). */
export function bindShortcuts(actions, clock = Date) {
  let armedAt = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    const found = SHORTCUTS.find(({ keys }) => pressed(event, keys));
    if (found) {
      const modal = document.querySelector("dialog:modal") !== null;
      if (modal && found.name !== "palette") return;
      event.preventDefault();
      actions[found.name]();
    } else if (event.key === "Escape" && !isOpen() && actions.running()) {
      if (clock.now() - armedAt <= TWICE_MS) {
        armedAt = -Infinity;
        actions.stop();
      } else {
        armedAt = clock.now();
        actions.hintStop(TWICE_MS);
      }
    }
  });
}

/** Esc first closes what is open. */
function isOpen() {
  return document.querySelector("dialog[open], [popover]:popover-open") !== null;
}
