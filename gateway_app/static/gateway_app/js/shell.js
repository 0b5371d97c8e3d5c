// What stands round the conversation: list, menus, palette, settings, find, keys. It puts them
// together and says what each of them may do.

import { paletteCommands } from "./commands.js";
import { copyText } from "./dom.js";
import { Drawer } from "./drawer.js";
import { Favicon } from "./favicon.js";
import { Find } from "./find.js";
import { KeysSheet, labelKeys } from "./keys_sheet.js";
import { headMenu, sessionMenu } from "./menus.js";
import { Palette } from "./palette.js";
import { plainText } from "./protocol.js";
import { Settings } from "./settings.js";
import { bindShortcuts } from "./shortcuts.js";
import { stepMessage } from "./stepping.js";
import { bindWelcome } from "./welcome.js";
import { WORDS } from "./words.js";

export class Shell {
  #model;
  #parts;
  #screen;
  #actions;
  #sessionActions;
  #views;
  #favicon = new Favicon();

  /** `model`, `screen`, `actions` and `sessionActions` as chat.js makes them. */
  constructor({ model, parts, screen, actions, sessionActions, menu, storage }) {
    this.#model = model;
    this.#parts = parts;
    this.#screen = screen;
    this.#actions = actions;
    this.#sessionActions = sessionActions;
    labelKeys(document);
    this.#views = {
      menu,
      drawer: new Drawer(parts, storage),
      sheet: new KeysSheet(parts, model.preferences),
      find: new Find(parts, {
        hasOlder: () => this.#state?.hasMore ?? false,
        loadOlder: () => actions.loadOlder(),
        home: () => screen.home(),
      }),
      settings: new Settings(parts, {
        preferences: model.preferences,
        theme: window.hermesTheme,
        actions: { shortcuts: () => this.#views.sheet.open() },
      }),
      palette: this.#newPalette(),
    };
    this.#bindButtons();
    this.#bindKeys();
    bindWelcome(parts, (text) => screen.takeBack(text));
  }

  /** What the list may do. */
  get listActions() {
    return {
      open: (sessionId) => this.#open(sessionId),
      menu: (button, session) =>
        this.#views.menu.open(
          button,
          sessionMenu(session, this.#sessionActions, () => this.#screen.startRename(session.id)),
        ),
      rename: (sessionId, title) => this.#sessionActions.rename(sessionId, title),
      loadMore: () => this.#model.sessions.loadMore(),
      showArchived: (archived) => this.#model.sessions.show({ archived }),
    };
  }

  /** After every change of the list or of what is open. */
  show() {
    this.#favicon.show(this.#model.sessions.hasNews(this.#model.conversation.current));
  }

  /** Another conversation is open: what was looked for in the one before is over. */
  switched() {
    if (!this.#parts.find.hidden) this.#views.find.close();
  }

  get #state() {
    return this.#model.feeds.get(this.#model.conversation.sessionId);
  }

  /** The open conversation's row as it was last heard of; null: it has none yet. */
  get #session() {
    const { sessionId } = this.#model.conversation;
    return this.#model.sessions.find(sessionId) ?? this.#state?.session ?? null;
  }

  #open(sessionId) {
    this.#views.drawer.chosen();
    this.#model.conversation.open(sessionId);
  }

  #newChat(text = "") {
    this.#views.drawer.chosen();
    this.#sessionActions.startNew();
    if (text !== "") this.#screen.takeBack(text);
  }

  #newPalette() {
    const { sessions } = this.#model;
    return new Palette(this.#parts, {
      source: () => ({
        sessions: sessions.list,
        canFind: this.#session !== null,
        commands: this.#commands(),
      }),
      search: (text, limit) => sessions.search(text, limit),
      does: {
        open: (sessionId) => this.#open(sessionId),
        find: (text) => this.#views.find.open(text),
        ask: (text) => this.#newChat(text),
      },
    });
  }

  #commands() {
    const { page, sessions } = this.#model;
    const state = {
      session: this.#session,
      dark: isDark(),
      admin: page.urls.admin,
      archived: sessions.archived,
    };
    return paletteCommands(state, {
      newChat: () => this.#newChat(),
      theme: () => this.#toggleTheme(),
      showArchive: () => {
        this.#views.drawer.reveal();
        sessions.show({ archived: !sessions.archived });
      },
      settings: () => this.#views.settings.open(),
      shortcuts: () => this.#views.sheet.open(),
      logOut: () => this.#parts.logOut.requestSubmit(),
      find: () => this.#views.find.open(),
      copyAnswer: () => this.#copyAnswer(),
      rename: () => this.#screen.renameOpen(),
      pin: (session) => this.#sessionActions.pin(session),
      copyLink: (sessionId) => this.#sessionActions.copyLink(sessionId),
      exportAs: (sessionId, form) => this.#sessionActions.exportAs(sessionId, form),
      archive: (session) => this.#sessionActions.archive(session),
      remove: (session) => this.#sessionActions.remove(session),
    });
  }

  #bindButtons() {
    const parts = this.#parts;
    const { menu, palette, settings, find } = this.#views;
    const clicks = {
      newChat: () => this.#newChat(),
      headNewChat: () => this.#newChat(),
      searchOpen: () => {
        this.#views.drawer.chosen();
        palette.toggle();
      },
      account: () => {
        this.#views.drawer.chosen();
        settings.open();
      },
      headShare: () => this.#sessionActions.copyLink(this.#model.conversation.sessionId),
      headFind: () => find.open(),
      titleMenu: () => menu.open(parts.titleMenu, this.#menuOfOpen()),
      headMore: () => menu.open(parts.headMore, headMenu(this.#menuOfOpen(), () => find.open())),
    };
    for (const [name, run] of Object.entries(clicks)) parts[name].addEventListener("click", run);
  }

  #menuOfOpen() {
    return sessionMenu(this.#session, this.#sessionActions, () => this.#screen.renameOpen());
  }

  #bindKeys() {
    const step = (by) => stepMessage(this.#parts.items, by, () => this.#screen.home());
    bindShortcuts({
      palette: () => this.#views.palette.toggle(),
      newChat: () => this.#newChat(),
      focusComposer: () => this.#screen.home(),
      find: () => this.#session && this.#views.find.open(),
      previousMessage: () => step(-1),
      nextMessage: () => step(1),
      copyAnswer: () => this.#copyAnswer(),
      theme: () => this.#toggleTheme(),
      shortcuts: () => this.#views.sheet.open(),
      running: () => Boolean(this.#state?.run),
      stop: () => {
        this.#screen.hint("");
        this.#actions.stop();
      },
      hintStop: (forMs) => this.#screen.hint(WORDS.escAgain, forMs),
    });
  }

  #toggleTheme() {
    window.hermesTheme.choose(isDark() ? "light" : "dark");
  }

  async #copyAnswer() {
    const rows = this.#state?.messages ?? [];
    const last = rows.findLast((row) => row.kind === "assistant" && row.state === "active");
    if (!last) return;
    await copyText(plainText(last.parts));
    this.#screen.offer(WORDS.answerCopied, null);
  }
}

function isDark() {
  const theme = window.hermesTheme.read();
  if (theme === "auto") return window.matchMedia("(prefers-color-scheme: dark)").matches;
  return theme === "dark";
}
