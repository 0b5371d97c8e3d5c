"""Model text is text: nothing in it runs, loads or breaks out, whatever it says."""

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import NewPage
from tests.browser.served import Served
from tests.fake_model_server import FakeModelServer, Gate, Script

pytestmark = pytest.mark.browser

HOSTILE = """\
<script>window.ran = 1</script>
<img src=x onerror="window.ran = 2">
<svg onload="window.ran = 3"><a href="javascript:window.ran=4">x</a></svg>

[click](javascript:window.ran=5) [data](data:text/html,<script>window.ran=6</script>)
[tab](java\tscript:window.ran=7) [entity](&#106;avascript:window.ran=8)
![shot](https://tracker.invalid/pixel.png) ![x](data:image/svg+xml,<svg onload=window.ran=9>)
<javascript:window.ran=10> <https://example.org/"onmouseover="window.ran=11>

<iframe srcdoc="<script>parent.ran = 12</script>"></iframe>
<form action=/accounts/logout/ method=post><button>free money</button></form>
<style>body { display: none }</style>
<div style="position:fixed;inset:0">cover</div>

```html" onclick="window.ran=13
<script>window.ran = 14</script>
```

| <b onclick=window.ran=15>a</b> | right |
|---|--:|
| <img src=x onerror=window.ran=16> | [l](vbscript:window.ran=17) |

# <a id="message" name="message">clobber</a>
- [ref]
  [ref]: javascript:window.ran=18 "<script>window.ran=19</script>"
"""


def test_it_runs_nothing_that_a_model_wrote(chat: ChatPage, model: FakeModelServer) -> None:
    gate = Gate()
    pieces = [HOSTILE[at : at + 7] for at in range(0, len(HOSTILE), 7)]
    model.script(
        Script(tokens=pieces, reasoning=["<img src=x onerror=window.ran=20>"], end_gate=gate)
    )
    requests: list[str] = []
    chat.page.on("request", lambda request: requests.append(request.url))
    chat.send("<img src=x onerror=window.ran=21>")
    expect(chat.live).to_contain_text("clobber")
    gate.release()
    expect(chat.footers).to_have_count(1)
    check_harmless(chat, requests)
    chat.page.reload()
    expect(chat.footers).to_have_count(1)
    check_harmless(chat, requests)
    assert chat.bubbles.inner_text() == "<img src=x onerror=window.ran=21>"


def check_harmless(chat: ChatPage, requests: list[str]) -> None:
    page = chat.page
    for link in chat.answers.locator("a").all():
        assert (link.get_attribute("href") or "").startswith("https://"), link.inner_text()
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    for code in chat.page.locator(".code pre").all():
        code.click()
    assert page.evaluate("window.ran") is None
    thread = page.locator(".thread")
    forbidden = "script, img, iframe, form, style, svg:not(.icon, .mark), [style], [id], [onclick]"
    assert thread.locator(f".prose :is({forbidden})").count() == 0
    assert not [url for url in requests if not url.startswith((chat.base_url, "blob:"))]


ATTACK = """async () => {
  const attacks = {
    markup: () => { document.body.innerHTML = "<img src=x onerror='window.ran = 1'>" },
    later: () => { setTimeout("window.ran = 2") },
    script: () => { document.createElement("script").text = "window.ran = 3" },
    policy: () => { trustedTypes.createPolicy("mine", {}) },
  };
  const told = new Promise((resolve) => {
    let left = Object.keys(attacks).length;
    addEventListener("securitypolicyviolation", () => --left === 0 && resolve());
  });
  const refused = Object.entries(attacks).filter(([, attack]) => {
    try { attack(); return false } catch { return true }
  }).map(([name]) => name);
  await told;
  return refused;
}"""


def test_it_is_served_with_a_policy_that_lets_only_the_sanitiser_make_markup(
    chat: ChatPage, served: Served, violations: list[str]
) -> None:
    answer = chat.page.request.get(served.url)
    policy = answer.headers["content-security-policy"]
    assert "require-trusted-types-for 'script'; trusted-types dompurify" in policy
    assert "unsafe" not in policy
    refused = chat.page.evaluate(ATTACK)
    assert refused == ["markup", "later", "script", "policy"]
    assert chat.page.evaluate("window.ran") is None
    chat.expected = ("TrustedHTML", "TrustedScript", "TrustedTypePolicy", "policy")
    assert {violation.split()[0] for violation in violations} == {
        "require-trusted-types-for",
        "trusted-types",
    }
    violations.clear()


def test_it_takes_a_hostile_title_as_text(
    chat: ChatPage, new_page: NewPage, model: FakeModelServer
) -> None:
    model.script(Script(tokens=["Fine."]))
    title = "<img src=x onerror=window.ran=1>"
    chat.ask(title)
    expect(chat.page.locator("h1")).to_have_text(title)
    expect(chat.sessions.first).to_have_text(title)
    assert chat.page.evaluate("window.ran") is None


def test_it_keeps_the_nodes_of_finished_blocks_while_an_answer_grows(
    chat: ChatPage, model: FakeModelServer
) -> None:
    first, second = Gate(), Gate()
    tokens = ["Done.\n\n```py\nx = 1\n```\n\n- a\n- b\n\nStill", " growing", " and done."]
    model.script(Script(tokens=tokens, gates={1: first, 2: second}))
    chat.send("Go")
    expect(chat.live).to_contain_text("Still")
    chat.page.evaluate(
        "window.kept = [...document.querySelectorAll('.live .prose > *')].slice(0, 3)"
    )
    chat.page.locator(".code").get_by_role("button", name="Wrap").click()
    first.release()
    expect(chat.live).to_contain_text("growing")
    second.release()
    expect(chat.footers).to_have_count(1)
    kept = "[...document.querySelectorAll('.prose > *')].slice(0, 3).every((e, i) => e === kept[i])"
    assert chat.page.evaluate(kept)
    expect(chat.page.locator(".code")).to_have_class("code wrapped")
