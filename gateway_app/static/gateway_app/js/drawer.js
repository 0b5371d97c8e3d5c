// The sidebar's place: beside the conversation where there is room, else in a modal drawer.

const WIDE = "(min-width: 1024px)";

export class Drawer {
  #parts;
  #wide = window.matchMedia(WIDE);
  #storage;

  /** The sidebar's folded state on wide pages is kept in `storage`. */
  constructor(parts, storage) {
    this.#parts = parts;
    this.#storage = storage;
    this.#wide.addEventListener("change", () => this.#settle());
    parts.drawerOpen.addEventListener("click", () => this.#open());
    parts.sideClose.addEventListener("click", () => this.#fold());
    parts.drawer.addEventListener("click", (event) => {
      if (event.target === parts.drawer) parts.drawer.close();
    });
    this.#settle();
  }

  /** After a choice in the list the conversation is what the person wants to see. */
  chosen() {
    if (this.#parts.drawer.open) this.#parts.drawer.close();
  }

  #settle() {
    const { drawer, side, sideSlot } = this.#parts;
    this.chosen();
    (this.#wide.matches ? sideSlot : drawer).append(side);
    const folded = this.#storage.getItem("hermes.side") === "folded";
    document.body.classList.toggle("side-folded", this.#wide.matches && folded);
  }

  /** The list is in sight. */
  reveal() {
    if (!this.#parts.side.checkVisibility()) this.#open();
  }

  #open() {
    if (!this.#wide.matches) return this.#parts.drawer.showModal();
    this.#storage.setItem("hermes.side", "open");
    this.#settle();
    return this.#parts.sideClose.focus();
  }

  #fold() {
    if (!this.#wide.matches) return this.#parts.drawer.close();
    this.#storage.setItem("hermes.side", "folded");
    this.#settle();
    return this.#parts.drawerOpen.focus();
  }
}
