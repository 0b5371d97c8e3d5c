// The settings dialog: each choice holds at once, without a button that saves.

export class Settings {
  #parts;
  #preferences;
  #theme;

  /** `actions`: shortcuts(). */
  constructor(parts, { preferences, theme, actions }) {
    this.#parts = parts;
    this.#preferences = preferences;
    this.#theme = theme;
    const { settings, settingsClose, settingsKeys, themes, enterKey } = parts;
    settingsClose.addEventListener("click", () => settings.close());
    settings.addEventListener("click", (event) => event.target === settings && settings.close());
    settingsKeys.addEventListener("click", () => {
      settings.close();
      actions.shortcuts();
    });
    themes.addEventListener("change", (event) => theme.choose(event.target.value));
    enterKey.addEventListener("change", (event) => {
      preferences.enterSends = event.target.value === "sends";
    });
  }

  open() {
    const { settings, themes, enterKey, languageNext } = this.#parts;
    check(themes, this.#theme.read());
    check(enterKey, this.#preferences.enterSends ? "sends" : "breaks");
    languageNext.value = location.pathname;
    if (!settings.open) settings.showModal();
  }
}

function check(fieldset, value) {
  for (const input of fieldset.querySelectorAll("input")) input.checked = input.value === value;
}
