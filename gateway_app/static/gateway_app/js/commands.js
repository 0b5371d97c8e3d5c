// The palette's commands: {icon, label, keys?, href?, run()}. Only what can be done right now.

import { gettext } from "./i18n.js";

/** `session` is the open conversation's row or null; `does` what the page can do. */
export function paletteCommands({ session, dark, admin, archived }, does) {
  return [
    { icon: "square-pen", label: gettext("New chat"), keys: "Ctrl Shift O", href: "/", run: does.newChat },
    ...(session ? ofSession(session, does) : []),
    {
      icon: dark ? "sun" : "moon",
      label: dark ? gettext("Use the light theme") : gettext("Use the dark theme"),
      keys: "Ctrl Shift L",
      run: does.theme,
    },
    {
      icon: "archive",
      label: archived ? gettext("Show the conversations") : gettext("Show archived conversations"),
      run: does.showArchive,
    },
    { icon: "settings", label: gettext("Settings"), run: does.settings },
    { icon: "keyboard", label: gettext("Keyboard shortcuts"), keys: "Ctrl /", run: does.shortcuts },
    ...(admin ? [{ icon: "shield-check", label: gettext("Admin"), href: admin, run: () => location.assign(admin) }] : []),
    { icon: "log-out", label: gettext("Log out"), run: does.logOut },
  ];
}

function ofSession(session, does) {
  return [
    { icon: "text-search", label: gettext("Find in this conversation"), keys: "Ctrl Shift F", run: does.find },
    { icon: "copy", label: gettext("Copy the last answer"), keys: "Ctrl Shift C", run: does.copyAnswer },
    { icon: "pencil", label: gettext("Rename this conversation"), run: does.rename },
    {
      icon: session.pinned ? "pin-off" : "pin",
      label: session.pinned ? gettext("Unpin this conversation") : gettext("Pin this conversation"),
      run: () => does.pin(session),
    },
    { icon: "link", label: gettext("Copy link"), run: () => does.copyLink(session.id) },
    {
      icon: "download",
      label: gettext("Export this conversation as Markdown"),
      run: () => does.exportAs(session.id, "markdown"),
    },
    {
      icon: "download",
      label: gettext("Export this conversation as JSONL"),
      run: () => does.exportAs(session.id, "jsonl"),
    },
    {
      icon: session.archived ? "archive-restore" : "archive",
      label: session.archived
        ? gettext("Put this conversation back into the list")
        : gettext("Archive this conversation"),
      run: () => does.archive(session),
    },
    { icon: "trash-2", label: gettext("Delete this conversation"), run: () => does.remove(session) },
  ];
}
