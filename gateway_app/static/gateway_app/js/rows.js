// A list by its items, a table by its rows: what is before them, they, what is after them.

const BODIES = {
  bullet_list_open: "bullet_list_open",
  ordered_list_open: "ordered_list_open",
  table_open: "tbody_open",
};

/**
 * {frame: [before, after], pieces, lines, marker} of a block's tokens: HTML, the line on which each
 * piece begins, and what an item begins with (null in a table). Null for other tokens, and for a
 * table without rows.
 */
export function rowsOf(tokens, render) {
  const [{ type, markup }] = tokens;
  const body = tokens.findIndex((token) => token.type === BODIES[type]);
  if (body < 0) return null;
  const { level } = tokens[body];
  const starts = [];
  let end = body + 1;
  for (; tokens[end].level > level; end += 1) {
    if (tokens[end].level === level + 1 && tokens[end].nesting === 1) starts.push(end);
  }
  return {
    frame: [render(tokens.slice(0, body + 1)), render(tokens.slice(end))],
    pieces: starts.map((at, number) => render(tokens.slice(at, starts[number + 1] ?? end))),
    lines: starts.map((at) => tokens[at].map[0]),
    marker: type === "table_open" ? null : type === "ordered_list_open" ? `1${markup}` : markup,
  };
}
