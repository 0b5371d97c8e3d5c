// The frames of hermes.v1, as this client sends and reads them.

import { gettext } from "./i18n.js";
import { told } from "./sentences.js";

export const SUBPROTOCOL = "hermes.v1";

export const CLOSE = Object.freeze({
  normal: 1000,
  revoked: 4001,
  forbidden: 4003,
  policy: 4008,
  tooLarge: 4009,
  fault: 4011,
  draining: 4012,
  overloaded: 4013,
});

/** A refused command: `code` is stable, the message is a sentence for a person. */
export class CommandError extends Error {
  constructor({ code, message, sentences, retryable = false, retryAfterMs = null }) {
    super(told(message, sentences));
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The socket closed before the reply came: the command may or may not have been accepted. */
export class ConnectionLost extends Error {
  constructor() {
    super(gettext("The connection was lost before the server replied."));
    this.code = "connection_lost";
    this.retryable = true;
    this.retryAfterMs = null;
  }
}

/**
 * A frame as {kind: "reply" | "event" | "control", ...}; null for what is no frame of ours.
 * Unknown control frames keep their type: whoever does not know it drops it.
 */
export function parseFrame(text) {
  let frame;
  try {
    frame = JSON.parse(text);
  } catch {
    return null;
  }
  if (frame === null || typeof frame !== "object") return null;
  if (frame.re !== undefined) return { kind: "reply", ...frame };
  if (frame.event !== undefined && typeof frame.seq === "number") return { kind: "event", ...frame };
  if (typeof frame.type === "string") return { kind: "control", ...frame };
  return null;
}

/** An id for one send, made before the first try: a resend carries the same one. */
export function newClientMessageId() {
  // crypto.randomUUID is absent on plain http, where a gateway in a home network may well live.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const command = Object.freeze({
  hello: (client) => ({ type: "hello", protocol: SUBPROTOCOL, client }),
  listModels: () => ({ type: "model.list" }),
  listSessions: ({ query, pinned, archived, cursor, limit }) => ({
    type: "session.list",
    ...set({ query, pinned, archived, cursor, limit }),
  }),
  subscribe: (sessionId, after) => ({ type: "session.subscribe", sessionId, ...set({ after }) }),
  unsubscribe: (sessionId) => ({ type: "session.unsubscribe", sessionId }),
  history: (sessionId, before, limit) => ({
    type: "session.history",
    sessionId,
    ...set({ before, limit }),
  }),
  update: (sessionId, fields) => ({ type: "session.update", sessionId, ...set(fields) }),
  seen: (sessionId, revision) => ({ type: "session.seen", sessionId, revision }),
  remove: (sessionId) => ({ type: "session.delete", sessionId }),
  restore: (sessionId) => ({ type: "session.restore", sessionId }),
  send: ({ sessionId, clientMessageId, content, agent, model, whenBusy }) => ({
    type: "message.send",
    ...set({ sessionId, agent, model }),
    clientMessageId,
    content,
    whenBusy: whenBusy ?? "queue",
  }),
  edit: ({ sessionId, messageId, clientMessageId, content, whenBusy }) => ({
    type: "message.edit",
    sessionId,
    messageId,
    clientMessageId,
    content,
    ...set({ whenBusy }),
  }),
  stop: (sessionId) => ({ type: "turn.stop", sessionId }),
  retry: (sessionId, turnId, clientMessageId) => ({
    type: "turn.retry",
    sessionId,
    turnId,
    clientMessageId,
  }),
  selectBranch: (sessionId, messageId) => ({ type: "branch.select", sessionId, messageId }),
  editQueued: (turnId, { content, whenBusy }) => ({
    type: "queue.edit",
    turnId,
    ...set({ content, whenBusy }),
  }),
  removeQueued: (turnId) => ({ type: "queue.remove", turnId }),
  ack: (acks) => ({ type: "ack", acks }),
  ping: (t) => ({ type: "ping", t }),
});

function set(fields) {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}

/** The plain text of a message's content: text as it is, parts joined. */
export function plainText(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n\n");
}
