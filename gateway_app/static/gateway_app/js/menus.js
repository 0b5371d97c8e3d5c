// What the small menus offer.

const THEMES = [
  ["auto", "System theme", "monitor"],
  ["light", "Light theme", "sun"],
  ["dark", "Dark theme", "moon"],
];

export function sessionMenu({ rename, remove }) {
  return [
    { label: "Rename", icon: "pencil", run: rename },
    { label: "Delete conversation", icon: "trash-2", run: remove, danger: true },
  ];
}

/** `urls` {admin (null for who may not), password}; `logOut()` submits the page's form. */
export function accountMenu({ theme, urls, logOut }) {
  const entries = THEMES.map(([name, label, icon]) => ({
    label,
    icon,
    checked: theme.read() === name,
    run: () => theme.choose(name),
  }));
  if (urls.admin) {
    entries.push({ label: "Admin", icon: "shield-check", run: () => location.assign(urls.admin) });
  }
  entries.push({ label: "Password", icon: "key", run: () => location.assign(urls.password) });
  entries.push({ label: "Log out", icon: "log-out", run: logOut });
  return entries;
}
