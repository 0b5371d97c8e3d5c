// A transcript's answers as the chat shows them: Markdown, by way of the same sanitiser. What was
// stored stays at hand below each, as it is.

import { stored } from "./admin_live.js";
import { make } from "./dom.js";
import { gettext } from "./i18n.js";
import { markdown } from "./markdown.js";
import { markup } from "./markup.js";

/** Draws every answer under `root` that is not drawn yet; the rows' own nodes are remembered. */
function drawAnswers(root) {
  for (const source of root.querySelectorAll("[data-markdown]")) {
    const row = source.closest(".h-row");
    if (!stored.has(row)) stored.set(row, row.cloneNode(true));
    draw(source);
  }
}

function draw(source) {
  const prose = make("div", "prose");
  prose.append(markup(markdown.render(source.textContent)));
  const fold = make("details", "h-fold h-source");
  const words = make("summary");
  words.textContent = gettext("As it is stored");
  source.removeAttribute("data-markdown");
  source.replaceWith(prose, fold);
  fold.append(words, source);
}

drawAnswers(document);
document.addEventListener("renewed", () => drawAnswers(document));
