// The one grey line under a turn: verdict, ribbon, tokens, cost, time; its details open in line.

import { bdi, clone, copyText, make, setIcon, setText } from "./dom.js";
import { formatDuration, formatNumber, formatUsd } from "./format.js";
import { gettext, interpolate } from "./i18n.js";
import { DETAILS, cachedWords, inputWords, outputWords, ribbonWords } from "./thread_words.js";
import { REASONS, VERDICTS, whyVerdict } from "./words.js";

const COPIED_MS = 2000;

export class FooterView {
  #parts;
  #turn = null;
  #copy = "";

  /** `actions`: retryTurn(turnId). */
  constructor(actions) {
    const { element, parts } = clone("t-footer");
    this.element = element;
    this.#parts = parts;
    parts.retry.addEventListener("click", () => actions.retryTurn(this.#turn.turnId));
    parts.verdict.addEventListener("click", () => this.#toggle());
    parts.copy.addEventListener("click", () => this.#copyAnswer());
  }

  update(item) {
    this.#copy = item.copy;
    this.#parts.copy.hidden = item.copy === "";
    this.#parts.retry.hidden = !item.retryable;
    if (item.turn === this.#turn) return;
    this.#turn = item.turn;
    this.#drawVerdict(item.turn);
    this.#drawRibbon(item.turn.usage ?? {});
    this.#parts.facts.replaceChildren(...facts(item.turn));
  }

  #drawVerdict({ verdict, reason }) {
    const known = VERDICTS[verdict];
    this.#parts.verdict.hidden = known === undefined;
    if (known === undefined) return;
    this.#parts.verdict.dataset.tone = known.tone;
    setIcon(this.#parts.verdictIcon, known.icon);
    setText(this.#parts.verdictWord, known.word);
    const why = verdict === "rebuild" ? REASONS[reason] : undefined;
    this.#parts.reason.hidden = why === undefined;
    setText(this.#parts.reason, why ?? "");
  }

  #drawRibbon({ inputTokens, cachedInputTokens, outputTokens }) {
    const { ribbon, ...parts } = this.#parts;
    const known = [inputTokens, cachedInputTokens, outputTokens].every(Number.isFinite);
    ribbon.hidden = !known || inputTokens + outputTokens === 0;
    if (ribbon.hidden) return;
    const fresh = inputTokens - cachedInputTokens;
    parts.cached.style.flexGrow = cachedInputTokens;
    parts.fresh.style.flexGrow = fresh;
    parts.output.style.flexGrow = outputTokens;
    const shares = { cached: cachedInputTokens, fresh, output: outputTokens };
    ribbon.title = ribbonWords(shares);
    ribbon.setAttribute("aria-label", ribbon.title);
  }

  #toggle() {
    const { details, verdict } = this.#parts;
    details.hidden = !details.hidden;
    verdict.setAttribute("aria-expanded", String(!details.hidden));
    if (!details.hidden) this.#drawDetails();
  }

  #drawDetails() {
    const { verdict, reason } = this.#turn;
    setText(this.#parts.why, whyVerdict(verdict, reason));
    const rows = detailRows(this.#turn).map(([name, value]) => {
      const row = make("div");
      const term = make("dt", "", name);
      const fact = make("dd");
      fact.append(bdi(value));
      row.append(term, fact);
      return row;
    });
    this.#parts.list.replaceChildren(...rows);
  }

  async #copyAnswer() {
    await copyText(this.#copy);
    setIcon(this.#parts.copyIcon, "check");
    setText(this.#parts.copied, gettext("Copied"));
    setTimeout(() => {
      setIcon(this.#parts.copyIcon, "copy");
      setText(this.#parts.copied, "");
    }, COPIED_MS);
  }
}

/** Only what is known: an unknown count or cost is left out, never shown as 0. */
function facts({ usage = {}, costUsd, durationMs, model, fallbackFrom }) {
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  const found = [];
  if (fallbackFrom && model) found.push(fact(interpolate(gettext("by %s"), [model])));
  if (Number.isFinite(inputTokens)) {
    found.push(fact(inputWords(inputTokens, cachedInputTokens), "wide"));
    // Where the line is short, the share alone stands for it.
    if (inputTokens > 0 && Number.isFinite(cachedInputTokens)) {
      found.push(fact(cachedWords(inputTokens, cachedInputTokens), "narrow"));
    }
  }
  if (Number.isFinite(outputTokens)) found.push(fact(outputWords(outputTokens), "wide"));
  if (Number.isFinite(Number(costUsd ?? NaN))) found.push(fact(formatUsd(Number(costUsd))));
  if (Number.isFinite(durationMs)) found.push(fact(formatDuration(durationMs), "wide"));
  return found;
}

function fact(text, className = "") {
  const element = bdi(text);
  element.className = `fact ${className}`.trim();
  return element;
}

function detailRows(turn) {
  const models = [
    [gettext("Model"), turn.model],
    [gettext("Instead of"), turn.fallbackFrom],
  ];
  return [...models.filter(([, name]) => name), ...countRows(turn)];
}

function countRows({ usage = {}, ttftMs, durationMs, revision }) {
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  const rows = [
    [DETAILS.fresh, minus(inputTokens, cachedInputTokens)],
    [DETAILS.cached, cachedInputTokens],
    [DETAILS.output, outputTokens],
    [DETAILS.first, ttftMs, formatDuration],
    [DETAILS.whole, durationMs, formatDuration],
    [DETAILS.revision, revision],
  ];
  return rows
    .filter(([, value]) => Number.isFinite(value))
    .map(([name, value, format]) => [name, format ? format(value) : formatNumber(value)]);
}

function minus(whole, part) {
  return Number.isFinite(whole) && Number.isFinite(part) ? whole - part : undefined;
}
