// A highlighter's tree of scopes as a flat list of runs [kind, text], which is all that the page
// colours: kind is keyword, string, number, function, comment, type, or "" for plain text.

const KINDS = new Map(
  Object.entries({
    keyword: "keyword", literal: "keyword", "selector-tag": "keyword", doctag: "keyword",
    "meta.keyword": "keyword", string: "string", regexp: "string", char: "string", addition: "string",
    link: "string", code: "string", symbol: "string", number: "number", deletion: "number",
    bullet: "number", "variable.constant": "number", "template-variable": "number",
    title: "function", section: "function", name: "function", "selector-id": "function",
    "selector-class": "function", comment: "comment", quote: "comment", meta: "comment",
    type: "type", built_in: "type", class: "type", "title.class": "type", attr: "type",
    attribute: "type", property: "type", "variable.language": "type",
  }),
);

/** The runs of a highlighter's root node; neighbours differ in kind. */
export function codeRuns(root) {
  const runs = [];
  walk(root, "", runs);
  return runs;
}

function walk(node, kind, runs) {
  for (const child of node.children) {
    if (typeof child !== "string") walk(child, kindOf(child.scope) ?? kind, runs);
    else if (runs.at(-1)?.[0] === kind) runs.at(-1)[1] += child;
    else runs.push([kind, child]);
  }
}

/** The kind of "title.class.inherited" is that of "title.class", else that of "title". */
function kindOf(scope) {
  // Text that is put into a string by a template is code of its own.
  if (scope === "subst") return "";
  for (let name = scope ?? ""; name; name = name.slice(0, Math.max(0, name.lastIndexOf(".")))) {
    if (KINDS.has(name)) return KINDS.get(name);
  }
  return undefined;
}
