// Alt Up and Alt Down: from message to message, and back to the field after the last one.

/** Moves the focus by one article of `items`; `home()` is where it goes after the last. */
export function stepMessage(items, by, home) {
  const articles = [...items.querySelectorAll("article")];
  const now = document.activeElement?.closest("article");
  const at = now ? articles.indexOf(now) + by : by < 0 ? articles.length - 1 : articles.length;
  if (at >= articles.length) return home();
  const article = articles[Math.max(0, at)];
  if (!article) return undefined;
  article.tabIndex = -1;
  article.focus({ preventScroll: true });
  return article.scrollIntoView({ block: "nearest" });
}
