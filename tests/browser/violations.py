"""Breaches of the content policy, as the browser itself reports them to each page and frame."""

from typing import Final

from playwright.sync_api import BrowserContext

WATCH: Final = """
addEventListener("securitypolicyviolation", (event) => window.noteViolation(
  `${event.effectiveDirective} ${event.blockedURI} at ${event.sourceFile}:${event.lineNumber}`));
"""


def watch_violations(context: BrowserContext, found: list[str]) -> None:
    """From now on each breach in the context's pages is added to `found`."""
    context.expose_function("noteViolation", lambda sentence: found.append(sentence))
    context.add_init_script(WATCH)
