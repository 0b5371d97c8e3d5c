// What the small menus offer.

import { gettext } from "./i18n.js";

/** What can be done with a conversation; `rename()` makes its title a field where it stands. */
export function sessionMenu(session, actions, rename) {
  const { pinned, archived } = session;
  return [
    { label: gettext("Rename"), icon: "pencil", run: rename },
    {
      label: pinned ? gettext("Unpin") : gettext("Pin"),
      icon: pinned ? "pin-off" : "pin",
      run: () => actions.pin(session),
    },
    { label: gettext("Copy link"), icon: "link", run: () => actions.copyLink(session.id) },
    {
      label: gettext("Export as Markdown"),
      icon: "download",
      run: () => actions.exportAs(session.id, "markdown"),
    },
    {
      label: gettext("Export as JSONL"),
      icon: "download",
      run: () => actions.exportAs(session.id, "jsonl"),
    },
    {
      label: archived ? gettext("Back to the list") : gettext("Archive"),
      icon: archived ? "archive-restore" : "archive",
      run: () => actions.archive(session),
    },
    {
      label: gettext("Delete conversation"),
      icon: "trash-2",
      run: () => actions.remove(session),
      danger: true,
    },
  ];
}

/** On a phone one button stands for all of the head's. */
export function headMenu(entries, find) {
  const finding = { label: gettext("Find in this conversation"), icon: "text-search", run: find };
  return [...entries.slice(0, -1), finding, ...entries.slice(-1)];
}
