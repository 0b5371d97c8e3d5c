// The languages that code can be coloured in: what people call them, and where each one's grammar is.

const GRAMMARS = {
  bash: () => import("../vendor/highlight/bash.js"),
  c: () => import("../vendor/highlight/c.js"),
  cpp: () => import("../vendor/highlight/cpp.js"),
  csharp: () => import("../vendor/highlight/csharp.js"),
  css: () => import("../vendor/highlight/css.js"),
  diff: () => import("../vendor/highlight/diff.js"),
  dockerfile: () => import("../vendor/highlight/dockerfile.js"),
  go: () => import("../vendor/highlight/go.js"),
  ini: () => import("../vendor/highlight/ini.js"),
  java: () => import("../vendor/highlight/java.js"),
  javascript: () => import("../vendor/highlight/javascript.js"),
  json: () => import("../vendor/highlight/json.js"),
  kotlin: () => import("../vendor/highlight/kotlin.js"),
  lua: () => import("../vendor/highlight/lua.js"),
  makefile: () => import("../vendor/highlight/makefile.js"),
  markdown: () => import("../vendor/highlight/markdown.js"),
  php: () => import("../vendor/highlight/php.js"),
  python: () => import("../vendor/highlight/python.js"),
  r: () => import("../vendor/highlight/r.js"),
  ruby: () => import("../vendor/highlight/ruby.js"),
  rust: () => import("../vendor/highlight/rust.js"),
  shell: () => import("../vendor/highlight/shell.js"),
  sql: () => import("../vendor/highlight/sql.js"),
  swift: () => import("../vendor/highlight/swift.js"),
  typescript: () => import("../vendor/highlight/typescript.js"),
  xml: () => import("../vendor/highlight/xml.js"),
  yaml: () => import("../vendor/highlight/yaml.js"),
};

/** Grammars that lie inside another one's code. */
const INSIDE = { xml: ["css", "javascript"], php: ["xml"], markdown: ["xml"], shell: ["bash"] };

/** What stands after a fence, in lower case: [grammar, name]. */
const NAMES = new Map(
  Object.entries({
    bash: ["bash", "Bash"], sh: ["bash", "Shell"], zsh: ["bash", "Zsh"],
    c: ["c", "C"], h: ["c", "C"], cpp: ["cpp", "C++"], "c++": ["cpp", "C++"], hpp: ["cpp", "C++"],
    csharp: ["csharp", "C#"], cs: ["csharp", "C#"], "c#": ["csharp", "C#"],
    css: ["css", "CSS"], diff: ["diff", "Diff"], patch: ["diff", "Patch"],
    dockerfile: ["dockerfile", "Dockerfile"], docker: ["dockerfile", "Dockerfile"],
    go: ["go", "Go"], golang: ["go", "Go"], ini: ["ini", "INI"], toml: ["ini", "TOML"],
    java: ["java", "Java"], javascript: ["javascript", "JavaScript"], js: ["javascript", "JavaScript"],
    mjs: ["javascript", "JavaScript"], jsx: ["javascript", "JSX"],
    json: ["json", "JSON"], jsonc: ["json", "JSON"], json5: ["json", "JSON"], jsonl: ["json", "JSON"],
    kotlin: ["kotlin", "Kotlin"], kt: ["kotlin", "Kotlin"], lua: ["lua", "Lua"],
    makefile: ["makefile", "Makefile"], make: ["makefile", "Makefile"],
    markdown: ["markdown", "Markdown"], md: ["markdown", "Markdown"], php: ["php", "PHP"],
    python: ["python", "Python"], py: ["python", "Python"], python3: ["python", "Python"],
    r: ["r", "R"], ruby: ["ruby", "Ruby"], rb: ["ruby", "Ruby"], rust: ["rust", "Rust"], rs: ["rust", "Rust"],
    shell: ["shell", "Terminal"], console: ["shell", "Terminal"], "shell-session": ["shell", "Terminal"],
    sql: ["sql", "SQL"], postgresql: ["sql", "SQL"], sqlite: ["sql", "SQL"], swift: ["swift", "Swift"],
    typescript: ["typescript", "TypeScript"], ts: ["typescript", "TypeScript"], tsx: ["typescript", "TSX"],
    xml: ["xml", "XML"], html: ["xml", "HTML"], svg: ["xml", "SVG"], vue: ["xml", "Vue"],
    mermaid: [null, "Mermaid"], yaml: ["yaml", "YAML"], yml: ["yaml", "YAML"],
  }),
);

/** The grammar for what stands after a fence; null if there is none. */
export function grammarOf(language) {
  return NAMES.get(language.toLowerCase())?.[0] ?? null;
}

/** What a code block in that language is called; "" if its writer gave it no name. */
export function nameOf(language) {
  return NAMES.get(language.toLowerCase())?.[1] ?? language;
}

/** [[grammar, its module], ...]: the grammar with those that lie inside it. */
export function loadGrammar(grammar) {
  const names = [...(INSIDE[grammar] ?? []).flatMap((name) => [name, ...(INSIDE[name] ?? [])]), grammar];
  return Promise.all(names.map(async (name) => [name, (await GRAMMARS[name]()).default]));
}
