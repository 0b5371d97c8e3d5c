// Whether the page stands on a dark ground now. What has to be drawn again when that changes has the
// class "follows-ground" and hears a "ground" event.

const system = window.matchMedia("(prefers-color-scheme: dark)");

export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme !== "light" && system.matches);
}

/** The colours of these tokens as they are now, by name. */
export function coloursOf(names) {
  const probe = document.createElement("span");
  document.body.append(probe);
  const found = names.map((name) => {
    probe.style.color = `var(--h-${name})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(found);
}

let was = isDark();

function look() {
  if (isDark() === was) return;
  was = isDark();
  for (const element of document.querySelectorAll(".follows-ground")) {
    element.dispatchEvent(new Event("ground"));
  }
}

system.addEventListener("change", look);
new MutationObserver(look).observe(document.documentElement, { attributeFilter: ["data-theme"] });
