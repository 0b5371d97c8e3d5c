// Which agents and models there are, and which one a conversation uses. A new conversation takes
// what the person chose last for one; one that is there keeps its own.

import { gettext } from "./i18n.js";
import { command } from "./protocol.js";

const PROVIDERS = Object.freeze({ openai: "OpenAI", anthropic: "Anthropic" });

export class Models {
  #connection;
  #storage;
  #name;
  #onChange;
  agents = [];
  list = [];

  /** `name` is the key in `storage`, one per person. */
  constructor({ connection, storage, name, onChange }) {
    this.#connection = connection;
    this.#storage = storage;
    this.#name = name;
    this.#onChange = onChange;
  }

  /** Asks the server anew; without an answer what was known stays. */
  async refresh() {
    try {
      this.list = (await this.#connection.request(command.listModels())).models;
      this.#onChange();
    } catch {
      // The next time we are connected, or the menu is opened, it is asked again.
    }
  }

  /** {agent, model} for the next new conversation; null: the default. Only what is on offer. */
  get choice() {
    const { agent = null, model = null } = this.#read();
    return {
      agent: this.agents.some((known) => known.slug === agent) ? agent : null,
      model: this.list.some((known) => known.id === model) ? model : null,
    };
  }

  choose({ agent, model }) {
    this.#storage.setItem(this.#name, JSON.stringify({ agent, model }));
    this.#onChange();
  }

  /** The agent that answers, by the session's row; without one, for a new conversation. */
  agentOf(session) {
    const slug = session ? session.agent : this.choice.agent;
    return this.agents.find((agent) => agent.slug === slug) ?? this.agents[0] ?? null;
  }

  /** The model that answers: {id, name, provider, contextWindow?}; null while nothing is known. */
  modelOf(session) {
    const own = session ? session.model : this.choice.model;
    const id = own || this.agentOf(session)?.model;
    if (!id) return this.list.find((model) => model.default) ?? null;
    return this.list.find((model) => model.id === id) ?? unlisted(id);
  }

  #read() {
    try {
      return JSON.parse(this.#storage.getItem(this.#name)) ?? {};
    } catch {
      return {};
    }
  }
}

/** A model that no provider lists now is still called by its name. */
function unlisted(id) {
  const [provider, ...name] = id.split(":");
  return { id, name: name.join(":"), provider };
}

/** Where the model runs, in words behind its name. */
export function placeOf(model) {
  if (model.provider === "local") return gettext("on this machine");
  return PROVIDERS[model.provider] ?? model.provider;
}
