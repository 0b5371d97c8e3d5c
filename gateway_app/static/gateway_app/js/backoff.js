// When to try again: exponential with full jitter above a floor, so that a restarted server is not
// met by every tab in the same instant.

const FIRST_MS = 500;
const CEILING_MS = 30_000;

/** Milliseconds before try `attempt` (0 is the first after a loss); `random()` is in [0, 1). */
export function retryDelay(attempt, random) {
  const ceiling = Math.min(CEILING_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return Math.round(ceiling / 2 + random() * (ceiling / 2));
}
