// Everything docked to the end of the page: what waits, the field, the model, how full it is.

import { Composer } from "./composer.js";
import { ContextGauge, contextGauge } from "./context_gauge.js";
import { ModelPicker, modelMenu } from "./model_picker.js";
import { QueuePanel, queueItems } from "./queue_panel.js";
import { offeredWays, waysMenu } from "./send_ways.js";
import { sizeProblem } from "./sizes.js";
import { queueFullWords } from "./words.js";

export class Dock {
  #model;
  #actions;
  #menu;
  #queue;
  #picker;
  #gauge;
  #shown = null;
  #draftShown = "";
  composer;

  /** `menu` is the page's one menu; `actions` as `Actions` has them. */
  constructor(parts, model, actions, menu) {
    this.#model = model;
    this.#actions = actions;
    this.#menu = menu;
    this.#queue = new QueuePanel(parts, actions);
    this.#gauge = new ContextGauge(parts);
    this.#picker = new ModelPicker(parts, { open: (button) => this.#openModels(button) });
    this.composer = new Composer(parts, {
      send: (text, whenBusy) => actions.send(text, whenBusy),
      stop: () => actions.stop(),
      draft: (text) => this.#keepDraft(text),
      editLast: () => actions.editLast(),
      cancelEdit: () => actions.cancelEdit(),
      openWays: (button) => this.#openWays(button),
      problemOf: (text) => sizeProblem(text, model.page.limits.maxFrameBytes),
      refuse: (sentence) => actions.refuse(sentence),
      enterSends: () => model.preferences.enterSends,
    });
  }

  /** `name` is who answers, `queued` what was sent and is not in the server's queue yet. */
  show(state, name, queued) {
    const { connection, conversation, editing, models } = this.#model;
    const connected = connection.ready;
    const items = queueItems(state.queue, queued);
    const ways = offeredWays(this.#model.whenBusy);
    this.#showDraft(conversation.current);
    this.#queue.show(items, { connected, now: ways.includes("interrupt") });
    this.composer.show({
      running: state.run !== null,
      connected,
      name,
      missing: Boolean(state.missing),
      full: this.#fullWords(state, items.length),
      ways,
      editing: editing.of(conversation.current) !== null,
    });
    const session = this.#session(state);
    const model = models.modelOf(session);
    const offered = models.list.length > 0 || models.agents.length > 1;
    this.#picker.show({ model: state.missing ? null : model, ready: connected && offered });
    this.#gauge.show(contextGauge(state, model));
  }

  /** Whether another model is offered than the one that answers. */
  othersThan(state) {
    const { models } = this.#model;
    const own = models.modelOf(this.#session(state));
    return models.list.some((model) => model.id !== own?.id);
  }

  /** Models, without agents; `choose({model})` is told what was picked. */
  openModels(button, choose) {
    this.#openMenu(button, { agents: [], choose });
  }

  /** The last message that waits becomes a field. */
  editQueued() {
    this.#queue.editLast();
  }

  /** Another tab changed the draft of the conversation that is open here. */
  draftChanged() {
    const draft = this.#model.drafts.get(this.#model.conversation.current);
    if (this.composer.text !== this.#draftShown) return;
    this.#draftShown = draft;
    this.composer.fill(draft);
  }

  #showDraft(current) {
    if (this.#shown === current) return;
    this.#shown = current;
    const editing = this.#model.editing.of(current);
    this.#draftShown = this.#model.drafts.get(current);
    this.composer.fill(editing?.text ?? this.#draftShown);
  }

  /** What is edited is no draft: the draft comes back after it. */
  #keepDraft(text) {
    const { conversation, drafts, editing } = this.#model;
    const edited = editing.of(conversation.current);
    if (edited !== null) {
      edited.text = text;
      return;
    }
    this.#draftShown = text;
    drafts.set(conversation.current, text);
  }

  #fullWords(state, waiting) {
    const { maxQueued } = this.#model.page.limits;
    return state.run !== null && waiting >= maxQueued ? queueFullWords(maxQueued) : "";
  }

  #session(state) {
    return this.#model.sessions.find(state.sessionId) ?? state.session;
  }

  #openWays(button) {
    const ways = offeredWays(this.#model.whenBusy);
    this.#menu.open(button, waysMenu(ways, (way) => this.composer.submit(way)));
  }

  #openModels(button) {
    const { agents } = this.#model.models;
    this.#openMenu(button, { agents, choose: (choice) => this.#actions.configure(choice) });
  }

  #openMenu(button, { agents, choose }) {
    const { conversation, feeds, models } = this.#model;
    const { sessionId } = conversation;
    const known = this.#session(feeds.get(sessionId) ?? { sessionId, session: null });
    this.#menu.open(
      button,
      modelMenu({
        agents,
        models: models.list,
        agent: models.agentOf(known),
        model: models.modelOf(known),
        choose,
      }),
      { atStart: true },
    );
    models.refresh();
  }
}
