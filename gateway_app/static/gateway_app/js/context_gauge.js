// How full the model's window was at the last request: a ring, a percentage, and the words.

import { setText } from "./dom.js";
import { formatNumber, percent } from "./format.js";
import { gettext, interpolate } from "./i18n.js";

const NEARLY = 80;
const TURN = 2 * Math.PI * 7;

export class ContextGauge {
  #parts;

  constructor(parts) {
    this.#parts = parts;
  }

  /** `gauge` as `contextGauge` gives it; null: nothing is known, and nothing is shown. */
  show(gauge) {
    const { gauge: button, gaugeRing, gaugeWord, gaugeWords } = this.#parts;
    button.hidden = gauge === null;
    if (gauge === null) return;
    button.dataset.tone = gauge.nearly ? "wait" : "plain";
    gaugeRing.setAttribute("stroke-dasharray", `${(TURN * gauge.percent) / 100} ${TURN}`);
    setText(gaugeWord, interpolate("%s %%", [gauge.percent]));
    setText(gaugeWords, gaugeSentences(gauge));
  }
}

/**
 * {percent, tokens, window, name, nearly} of the newest request whose input is known, beside the
 * window of the model that answers next; null if one of the two is unknown.
 */
export function contextGauge(state, model) {
  const window = model?.contextWindow;
  const last = state.messages.findLast(
    (message) => state.turns[message.turnId]?.contextTokens !== undefined,
  );
  if (!window || last === undefined) return null;
  const tokens = state.turns[last.turnId].contextTokens;
  const full = Math.min(100, percent(tokens, window));
  return { percent: full, tokens, window, name: model.name, nearly: full >= NEARLY };
}

export function gaugeSentences({ tokens, window, name, nearly }) {
  const values = { tokens: formatNumber(tokens), window: formatNumber(window), name };
  const words = gettext("The last request held %(tokens)s tokens; %(name)s holds %(window)s.");
  const held = interpolate(words, values);
  if (!nearly) return held;
  const full = gettext(
    "When it is full, the next message is refused. Start a new chat, or choose a model that holds more.",
  );
  return `${held} ${full}`;
}
