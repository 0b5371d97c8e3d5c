// The head of the open conversation: its title, who answers, and the title as a field.

import { setText } from "./dom.js";
import { gettext, interpolate } from "./i18n.js";

export class Head {
  #parts;
  #shown = null;

  /** `actions`: rename(sessionId, title). */
  constructor(parts, actions) {
    this.#parts = parts;
    parts.titleForm.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(actions);
      this.#giveBack();
    });
    parts.titleField.addEventListener("blur", () => this.#save(actions));
    parts.titleField.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.#close();
      this.#giveBack();
    });
  }

  /**
   * `head`: {sessionId, title, session (null until known), running, name (null: nobody answers)}.
   */
  show(head) {
    if (head.sessionId !== this.#shown?.sessionId) this.#close();
    this.#shown = head;
    const { title, titleMenu, who, whoRow, head: element } = this.#parts;
    const { headShare, headFind, headMore } = this.#parts;
    setText(title, head.title);
    whoRow.hidden = head.name === null;
    setText(who, whoWords(head));
    for (const part of [titleMenu, headShare, headFind, headMore]) part.hidden = head.session === null;
    element.classList.toggle("running", head.running);
    const pageTitle = head.sessionId === null ? "Hermes" : `${head.title} · Hermes`;
    if (document.title !== pageTitle) document.title = pageTitle;
  }

  startRename() {
    const { titleField, titleForm, titleRow } = this.#parts;
    titleField.value = this.#shown.session.title;
    titleForm.hidden = false;
    titleRow.hidden = true;
    titleField.focus();
    titleField.select();
  }

  /** The focus goes to the button whose menu offers the renaming. */
  #giveBack() {
    const { titleMenu, headMore } = this.#parts;
    (titleMenu.checkVisibility() ? titleMenu : headMore).focus();
  }

  #save(actions) {
    if (this.#parts.titleForm.hidden) return;
    const title = this.#parts.titleField.value.trim();
    const { sessionId, session } = this.#shown;
    this.#close();
    if (title !== "" && title !== session.title) actions.rename(sessionId, title);
  }

  #close() {
    this.#parts.titleForm.hidden = true;
    this.#parts.titleRow.hidden = false;
  }
}

/** Who would answer, or who does so now: the two must not be taken for each other. */
function whoWords({ name, running }) {
  return running ? interpolate(gettext("%s is answering"), [name]) : name;
}
