// The first page: suggestions that begin a message, and how to connect a stronger model.

/** `fill(text)` puts a beginning into the message field. */
export function bindWelcome({ suggestions, providerOpen, providerSteps }, fill) {
  suggestions.addEventListener("click", (event) => {
    const card = event.target.closest("[data-fill]");
    if (card) fill(`${card.dataset.fill}\n\n`);
  });
  providerOpen?.addEventListener("click", () => {
    providerSteps.hidden = !providerSteps.hidden;
    providerOpen.setAttribute("aria-expanded", String(!providerSteps.hidden));
  });
}
