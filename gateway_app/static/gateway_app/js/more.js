// The button behind what was loaded of a list: while it is in sight, more comes by itself.

const AGAIN_MS = 1000;

/**
 * `load()` resolves to true if more came; else it is asked again a second later. An observer
 * reports changes only: after each page it looks afresh, since the button may be in sight still.
 */
export function loadInSight(button, load, { root, rootMargin }) {
  const observer = new IntersectionObserver(
    async (seen) => {
      if (!seen.at(-1).isIntersecting) return;
      if (await load()) lookAgain();
      else setTimeout(lookAgain, AGAIN_MS);
    },
    { root, rootMargin },
  );
  const lookAgain = () => {
    observer.unobserve(button);
    observer.observe(button);
  };
  button.addEventListener("click", load);
  observer.observe(button);
}
