"""docs/websocket.md describes every command, code and frame that there is, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import gateway_app.providers.registry  # noqa: F401  every provider error is defined now
from gateway_app import agent, close_codes, protocol
from gateway_app.config import GatewayConfig
from gateway_app.errors import GatewayError
from gateway_app.providers.base import ProviderError
from sessions_app.errors import SessionError
from tests.docs.reading import ROOT, document, section, table_words

PAGE: Final = document("docs/websocket.md")
CODE: Final = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted(Path(ROOT / "gateway_app").rglob("*.py"))
)
COMMANDS: Final = {str(kind.__struct_config__.tag): kind for kind in protocol.AnyCommand.__args__}


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def tree(root: type) -> Iterator[type]:
    """The class and everything below it."""
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def test_it_describes_every_command() -> None:
    headings = set(re.findall(r"^### `([a-z.]+)`$", section(PAGE, "## Commands"), re.MULTILINE))
    assert headings == set(COMMANDS)
    later = section(PAGE, "### Not yet")
    assert all(f"`{command}`" in later for command in protocol.LATER)


@pytest.mark.parametrize("command", COMMANDS)
def test_it_describes_every_field_of_a_command(command: str) -> None:
    kind = COMMANDS[command]
    text = section(PAGE, f"### `{command}`")
    rows = re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
    named = set(re.findall(r"`([a-zA-Z]+\??)`", " ".join(rows)))
    optional = len(kind.__struct_fields__) - len(kind.__struct_defaults__)
    assert named == {
        camel(name) + "?" * (place >= optional)
        for place, name in enumerate(kind.__struct_fields__)
        if name != "id"
    }


def test_it_lists_every_error_code() -> None:
    refusals = [*tree(SessionError), *tree(GatewayError)]
    codes = {kind.code for kind in refusals} - {"invalid", "fenced"}
    codes |= set(re.findall(r'FrameError\(\s*"(\w+)"', CODE))
    codes |= set(re.findall(r'protocol\.error\(\s*[\w.]+, "(\w+)"', CODE))
    codes |= set(re.findall(r'code = "(\w+)" if envelope', CODE))
    assert set(table_words(section(PAGE, "## Error codes"))) == codes


def test_it_lists_every_reason_of_a_failed_run() -> None:
    codes = {kind.code for kind in tree(ProviderError)} | {agent.TurnLimit.code}
    codes |= set(re.findall(r'Ending\("\w+", "(\w+)"', CODE))
    codes |= set(re.findall(r'run_error\("(\w+)"', CODE))
    assert set(table_words(section(PAGE, "### Why a run failed"))) == codes


def test_it_lists_every_close_code() -> None:
    ours = {value for name, value in vars(close_codes).items() if name.isupper()}
    listed = re.findall(r"^\| (\d{4}) ", section(PAGE, "## Close codes"), re.MULTILINE)
    assert {int(code) for code in listed} == ours | {1000}


def test_it_lists_every_control_frame() -> None:
    kinds = set(re.findall(r'protocol\.control\(\s*"(\w+)"', CODE))
    assert set(table_words(section(PAGE, "## Frames"))) == kinds


def test_it_lists_every_event() -> None:
    text = section(PAGE, "## Events")
    kinds = set(re.findall(r'"type": "([A-Z_]+)"', CODE)) - {"CUSTOM"}
    kinds |= {"RUN_ERROR"}
    first = " ".join(re.findall(r"^\| (.+?) \|", text, re.MULTILINE))
    assert set(re.findall(r"`([A-Z_]+)`", first)) == kinds
    names = {f"hermes.{name}" for name in re.findall(r'\bcustom\(\s*"(\w+)"', CODE)}
    assert set(re.findall(r"`(hermes\.\w+)` \|", text)) == names


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hello_timeout_s", "within 10 seconds"),
        ("reauthorise_s", "every 30 seconds"),
        ("heartbeat_ping_s", "every 25 seconds"),
        ("max_hello_bytes", "16 KiB"),
        ("max_frame_bytes", "1 MiB (`limits.maxFrameBytes`)"),
        ("max_open_commands", "open commands of a socket | 64"),
        ("commands_per_s", "commands of a person | 200"),
        ("commands_burst", "200 a second, 2,000"),
        ("sends_per_s", "make a session or a turn | 50"),
        ("sends_burst", "50 a second, 500"),
        ("user_sockets", "sockets of a person | 2,500"),
        ("address_sockets", "sockets of an address | 5,000"),
        ("connects_per_s", "new sockets of an address | 20"),
        ("connects_burst", "20 a second, 500"),
        ("max_queued", "32 (`limits.maxQueued`)"),
        ("window_frames", "256 frames"),
        ("window_bytes", "256 frames, 1 MiB"),
        ("lag_close_s", "for 30 seconds"),
        ("snapshot_rows", "latest 50"),
        ("log_keep_events", "10,000"),
        ("log_keep_s", "7 days"),
        ("flush_quick_tick_ms", "20 ms"),
        ("flush_tick_ms", "50 ms"),
    ],
)
def test_it_gives_the_limits_that_hold(name: str, said: str) -> None:
    sizes = {"KiB": 1024, "MiB": 1024**2, "days": 86_400}
    number, unit = re.findall(r"([\d,]+) ?(KiB|MiB|days)?(?!.*\d)", said)[0]
    value = float(number.replace(",", "")) * sizes.get(unit, 1)
    assert value == getattr(GatewayConfig(), name)
    assert said in PAGE


def test_it_links_only_to_what_is_there() -> None:
    headings = re.findall(r"^#{2,3} (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", name.lower()).replace(" ", "-") for name in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
