// Light, dark, or as the system. Loaded as a classic script in the head, before the first paint,
// by every page of ours; the chat's menu uses it through window.hermesTheme. The name is the one
// that Django's admin keeps its choice under: one choice for both.

(() => {
  const NAME = "theme";
  const root = document.documentElement;

  function read() {
    try {
      return localStorage.getItem(NAME) ?? "auto";
    } catch {
      return "auto";
    }
  }

  function apply(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  }

  function choose(theme) {
    apply(theme);
    try {
      localStorage.setItem(NAME, theme);
    } catch {
      // Without storage the choice holds until the page is left.
    }
  }

  apply(read());
  window.addEventListener("storage", (event) => event.key === NAME && apply(read()));
  window.hermesTheme = Object.freeze({ read, choose });
})();
