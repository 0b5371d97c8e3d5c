// Addresses of what the page loads only when it needs it. The server names them: they carry hashes.

let known = null;

export function asset(name) {
  known ??= JSON.parse(document.getElementById("assets").textContent);
  return known[name];
}
