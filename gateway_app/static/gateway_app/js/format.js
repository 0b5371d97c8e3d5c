// Numbers and times as people read them. Pure; `now` is always given.

const DAY_MS = 86_400_000;

export function formatCount(count) {
  if (count < 1000) return String(count);
  if (count < 9_950) return `${(count / 1000).toFixed(1)}k`;
  if (count < 999_500) return `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function formatDuration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function formatUsd(cost) {
  if (cost <= 0) return "$0";
  if (cost < 0.001) return "<$0.001";
  return cost < 0.1 ? `$${cost.toFixed(3)}` : `$${cost.toFixed(2)}`;
}

export function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1).replace(".0", "")} MB`;
}

export function percent(part, whole) {
  return Math.floor((100 * part) / whole);
}

export function clockTime(iso) {
  return new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

export function fullTime(iso) {
  return new Date(iso).toLocaleString([], { dateStyle: "full", timeStyle: "short" });
}

export function countWords(text) {
  return text.split(/\s+/).filter(Boolean).length;
}

/** Whole local days between two instants; 0 is the same day. */
export function daysAgo(iso, now) {
  const midnight = (time) => new Date(time.getFullYear(), time.getMonth(), time.getDate());
  return Math.round((midnight(now) - midnight(new Date(iso))) / DAY_MS);
}
