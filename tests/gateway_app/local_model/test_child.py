"""The child process of the real model: it lives exactly as long as it should."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from gateway_app.config import GatewayConfig
from gateway_app.local_model import child as child_module
from gateway_app.local_model.child import LocalModelChild
from gateway_app.local_model.packages import LocalModelError
from gateway_app.providers.base import ModelUnavailable
from gateway_app.providers.local import LocalProvider
from tests.gateway_app.local_model.conftest import Conversation

pytestmark = pytest.mark.local_model

PROJECT = Path(__file__).resolve().parents[3]

OWNER = """
import sys
from gateway_app.local_model.child import LocalModelChild
child = LocalModelChild()
url = child.wait(120)
sys.stdout.write(f"{url} {child.pid}\\n")
sys.stdout.flush()
sys.stdin.read()
"""


def has_ended(pid: int, within_s: float) -> bool:
    """Whether a process that is not our child ends in time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(within_s * 1000))
    finally:
        os.close(handle)


@pytest.fixture
def child():
    made = LocalModelChild()
    yield made
    made.close()


async def healthy(url: str) -> bool:
    async with aiohttp.ClientSession() as http:
        try:
            async with http.get(f"{url}/health") as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False


async def test_it_starts_one_child_for_all_who_ask(child):
    urls = set(await asyncio.gather(*(child.url() for _ in range(5))))
    assert urls == {child.start()}
    assert await healthy(urls.pop())


async def test_it_replaces_a_child_that_died_at_the_same_address(child):
    url = await child.url()
    first = child.pid
    os.kill(first, signal.SIGKILL)
    assert has_ended(first, 10)
    assert await healthy(url)
    assert await child.url() == url
    assert child.pid != first


async def test_it_ends_the_child_and_frees_the_address(child):
    url = await child.url()
    pid = child.pid
    await child.aclose()
    assert has_ended(pid, 0)
    assert not await healthy(url)
    with pytest.raises(LocalModelError, match="stopped"):
        await child.url()


async def test_it_ends_a_child_that_still_loads(child):
    child.start()
    await child.aclose()
    assert child.pid is None


@pytest.fixture
def owner():
    """A process that owns a child; the pid of that child beside it."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process, int(process.stdout.readline().split()[1])
        process.kill()


def test_it_ends_with_its_owner_even_if_that_is_killed(owner):
    process, pid = owner
    assert not has_ended(pid, 0)
    process.kill()
    assert has_ended(pid, 10)


def test_it_does_not_get_the_ctrl_c_of_its_owners_terminal(owner):
    process, pid = owner
    assert os.getpgid(process.pid) == process.pid
    assert os.getpgid(pid) != process.pid


async def test_it_is_started_by_the_provider_and_ended_with_it():
    provider = LocalProvider(GatewayConfig())
    try:
        provider.start()
        address = await provider.address()
        assert address.endswith("/v1")
        assert await healthy(address.removesuffix("/v1"))
    finally:
        await provider.aclose()
    assert not await healthy(address.removesuffix("/v1"))


async def test_it_fails_an_answer_that_a_dying_child_cut_and_serves_the_next(child):
    provider = LocalProvider(GatewayConfig())
    provider._child = child
    try:
        talk = Conversation(provider)
        talk.write("user", "émojis please: 🎉🎉")
        answer = talk.stream(3000)
        await anext(answer)
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(ModelUnavailable, match=r"Your message is kept"):
            async for _ in answer:
                pass
        assert (await Conversation(provider).say("Hi")).output_tokens > 0
    finally:
        await provider.aclose()


async def test_it_replaces_a_child_that_hangs(child, monkeypatch):
    monkeypatch.setattr(child_module, "CHECK_S", 0.5)
    url = await child.url()
    first = child.pid
    os.kill(first, signal.SIGSTOP)
    assert await asyncio.to_thread(has_ended, first, 60)
    assert await healthy(url)
    assert child.pid != first


async def test_it_says_that_a_child_cannot_start_and_goes_on_trying(child, monkeypatch, tmp_path):
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(child_module, "PROJECT", tmp_path)
        with pytest.raises(LocalModelError, match="could not be started"):
            await child.url()
    assert await healthy(await child.url())


def test_it_runs_alone_until_a_signal():
    with subprocess.Popen(
        [sys.executable, "manage.py", "localmodel"],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as command:
        url = command.stdout.readline().strip()
        assert asyncio.run(healthy(url))
        command.send_signal(signal.SIGTERM)
        assert command.wait(10) == 0
        assert command.stdout.read() == ""
