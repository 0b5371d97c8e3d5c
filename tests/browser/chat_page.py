"""The chat as a person sees it: what a test does and reads goes through the page."""

from typing import Final

from playwright.sync_api import Locator, Page, expect

PATIENCE_MS: Final = 60_000
"""Longer than anything takes on a busy machine: only a test that fails waits for it."""
RESTART_MS: Final = 3 * PATIENCE_MS
"""Until another server has started and a page has come back to it."""

HEARD_MS: Final = 20_000
"""Sooner than a silent server is asked for a sign of life."""


class ChatPage:
    """One tab. Everything its console said and every error of its scripts is in `complaints`."""

    def __init__(self, page: Page, base_url: str) -> None:
        self.page, self.base_url = page, base_url
        self.complaints: list[str] = []
        self.expected: tuple[str, ...] = ()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)

    def unexpected(self) -> list[str]:
        """Complaints, without those that a test brings about by cutting the network."""
        return [text for text in self.complaints if not any(one in text for one in self.expected)]

    def open(self, path: str = "/") -> "ChatPage":
        self.page.goto(self.base_url + path)
        self.wait_connected()
        return self

    def wait_connected(self) -> None:
        expect(self.part("accountState")).to_have_text("Connected", timeout=PATIENCE_MS)

    def open_with_clock(self) -> "ChatPage":
        """As `open`; `page.clock` is the page's clock, and runs as any until it is held."""
        self.page.clock.install()
        return self.open()

    def hold_clock(self) -> None:
        """Time stands still in the page, and nothing is drawn, until `page.clock.resume`."""
        now_ms: int = self.page.evaluate("Date.now()")
        self.page.clock.pause_at((now_ms + HEARD_MS) / 1000)

    def part(self, name: str) -> Locator:
        return self.page.locator(f'[data-part="{name}"]')

    @property
    def field(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def bubbles(self) -> Locator:
        return self.page.locator(".user .bubble")

    @property
    def answers(self) -> Locator:
        return self.page.locator(".answer .prose")

    @property
    def live(self) -> Locator:
        return self.page.locator(".answer.live .prose")

    @property
    def queued(self) -> Locator:
        return self.page.locator(".queued-text")

    @property
    def sessions(self) -> Locator:
        return self.page.locator(".session-title")

    @property
    def footers(self) -> Locator:
        return self.page.locator(".row.footer")

    def send(self, text: str) -> None:
        self.field.fill(text)
        self.field.press("Enter")

    def ask(self, text: str) -> None:
        """Sends and waits for the whole answer."""
        before = self.footers.count()
        self.send(text)
        expect(self.footers).to_have_count(before + 1, timeout=PATIENCE_MS)

    def wait_opened(self) -> str:
        """The conversation has an address of its own; its path."""
        self.page.wait_for_url("**/c/*/")
        return self.page.url.removeprefix(self.base_url)

    def texts(self) -> list[tuple[str, str]]:
        """Every bubble and answer in order, as (kind, text)."""
        rows = self.page.locator(".row.user .bubble, .row.answer .prose")
        found = rows.evaluate_all(
            "all => all.map(e => [e.matches('.bubble') ? 'user' : 'answer', e.innerText.trim()])"
        )
        return [(kind, text) for kind, text in found]
