// The button in the composer that names the model, and the menu behind it: agents, then models.

import { setText } from "./dom.js";
import { gettext } from "./i18n.js";
import { placeOf } from "./models.js";

export class ModelPicker {
  #parts;

  /** `actions`: open(button). */
  constructor(parts, actions) {
    this.#parts = parts;
    parts.model.addEventListener("click", () => actions.open(parts.model));
  }

  /** `model`: {name, provider}, or null while nothing is known. `ready`: there is a choice. */
  show({ model, ready }) {
    const { model: button, modelIcon, modelName, modelPlace } = this.#parts;
    button.hidden = model === null;
    if (model === null) return;
    const local = model.provider === "local";
    modelIcon.toggleAttribute("hidden", !local);
    setText(modelName, model.name);
    setText(modelPlace, local ? placeOf(model) : "");
    button.disabled = !ready;
    button.title = `${model.name}, ${placeOf(model)}`;
  }
}

/** The menu's entries. `choose({agent} | {model})` is told what was picked. */
export function modelMenu({ agents, models, agent, model, choose }) {
  const entries = [];
  if (agents.length > 1) {
    entries.push({ heading: gettext("Agent") });
    for (const one of agents) {
      entries.push({
        label: one.name,
        icon: "bot",
        checked: one.slug === agent?.slug,
        run: () => choose({ agent: one.slug }),
      });
    }
    entries.push({ heading: gettext("Model") });
  }
  for (const one of models) {
    entries.push({
      label: one.name,
      detail: placeOf(one),
      icon: one.provider === "local" ? "cpu" : "cloud",
      checked: one.id === model?.id,
      run: () => choose({ model: one.id }),
    });
  }
  return entries;
}
