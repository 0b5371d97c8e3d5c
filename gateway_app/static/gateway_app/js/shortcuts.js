// Keys that work anywhere on the page. No single letters; none while an input method composes.

const TWICE_MS = 2000;

/** `actions`: newChat(), focusComposer(), running() -> bool, stop(), hintStop(forMs). */
export function bindShortcuts(actions, clock = Date) {
  let armedAt = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    const command = event.ctrlKey || event.metaKey;
    if (command && event.shiftKey && event.code === "KeyO") {
      event.preventDefault();
      actions.newChat();
    } else if (event.key === "Escape" && event.shiftKey) {
      event.preventDefault();
      actions.focusComposer();
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
