// Numbers and times as people read them, in the page's language. Pure; `now` is always given.

import { language } from "./i18n.js";

const DAY_MS = 86_400_000;
const CLOCK = { hour: "2-digit", minute: "2-digit" };
const FULL = { dateStyle: "full", timeStyle: "short" };
const formatters = new Map();

/** The number with its separators, and exactly so many digits behind the point. */
export function formatNumber(value, digits = 0) {
  const exactly = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return value.toLocaleString(language, exactly);
}

export function formatCount(count) {
  if (count < 1000) return String(count);
  if (count < 9_950) return `${formatNumber(count / 1000, 1)}k`;
  if (count < 999_500) return `${Math.round(count / 1000)}k`;
  return `${formatNumber(count / 1_000_000, 1)}M`;
}

export function formatDuration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${formatNumber(ms / 1000, 1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function formatUsd(cost) {
  if (cost <= 0) return "$0";
  if (cost < 0.001) return `<$${formatNumber(0.001, 3)}`;
  return `$${formatNumber(cost, cost < 0.1 ? 3 : 2)}`;
}

export function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  const size = bytes / 1024 / 1024;
  return `${size.toLocaleString(language, { maximumFractionDigits: 1 })} MB`;
}

export function percent(part, whole) {
  return Math.floor((100 * part) / whole);
}

export function clockTime(iso) {
  return timeWords(iso, CLOCK);
}

export function fullTime(iso) {
  return timeWords(iso, FULL);
}

/** A formatter is made once for each way and language: it costs far more than what it formats. */
function timeWords(iso, way) {
  const key = `${language} ${Object.keys(way)}`;
  if (!formatters.has(key)) formatters.set(key, new Intl.DateTimeFormat(language, way));
  const time = new Date(iso);
  return Number.isNaN(time.getTime()) ? "" : formatters.get(key).format(time);
}

export function countWords(text) {
  return text.split(/\s+/).filter(Boolean).length;
}

/** Whole local days between two instants; 0 is the same day. */
export function daysAgo(iso, now) {
  const midnight = (time) => new Date(time.getFullYear(), time.getMonth(), time.getDate());
  return Math.round((midnight(now) - midnight(new Date(iso))) / DAY_MS);
}
