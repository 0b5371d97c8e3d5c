"""A wake-up is small, however much there is to tell (case D3)."""

from dataclasses import replace
from typing import Any, Final

import msgpack
import pytest

from gateway_app.event_store import LoggedEvents
from gateway_app.wakeups import Ears, WakeUps
from sessions_app.models import new_id

LARGEST_BYTES: Final = 8 * 1024
MANY: Final = 950
SESSIONS: Final = [new_id() for _ in range(MANY)]
REDIS: Final = {
    "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
    "CONFIG": {"hosts": ["redis://127.0.0.1:1/0"]},  # where nobody is: nothing is sent
}


def test_it_tells_everything_in_small_pieces(settings: Any) -> None:
    settings.CHANNEL_LAYERS = {"default": REDIS}
    heard: list[tuple[Any, ...]] = []
    ears = Ears(
        events=lambda *news: heard.append(("events", *news)),
        stop=lambda *news: heard.append(("stop", *news)),
        work=lambda: heard.append(("work",)),
        revoked=lambda user_id: heard.append(("revoked", user_id)),
        listed=lambda session_id: heard.append(("listed", session_id)),
    )
    sender, hearer = WakeUps(ears, "s" * 64), WakeUps(ears, "hearer")
    sender.tell_events(LoggedEvents(one, None, 10**15, (b"{}",)) for one in SESSIONS)
    sender.tell_listed(SESSIONS)
    sender.tell_work()
    for number, one in enumerate(SESSIONS):
        sender.tell_stop(one, 10**15)
        sender.tell_revoked(10**15 + number)
    messages = sender._messages()
    assert max(len(msgpack.packb(message)) for message in messages) <= LARGEST_BYTES
    for message in messages:
        hearer._take(msgpack.unpackb(msgpack.packb(message)))
    stops = {("stop", one, 10**15) for one in SESSIONS}
    assert set(heard[: MANY + 1]) == {("work",), *stops}
    assert set(heard) == {
        ("work",),
        *stops,
        *(("revoked", 10**15 + number) for number in range(MANY)),
        *(("listed", one) for one in SESSIONS),
        *(("events", one, 10**15) for one in SESSIONS),
    }
    assert len(heard) == 4 * MANY + 1
    assert sender._messages() == []


@pytest.mark.parametrize("strange", [{"seqs": 7}, {"stops": [["no id", 1]]}, {"listed": [None]}])
def test_it_hears_on_after_news_that_it_cannot_read(
    settings: Any, caplog: pytest.LogCaptureFixture, strange: dict[str, Any]
) -> None:
    """A process of another version may speak otherwise while a group is brought up to date."""
    settings.CHANNEL_LAYERS = {"default": REDIS}
    heard: list[str] = []
    ears = Ears(*[lambda *_: None] * 5)
    hearer = WakeUps(replace(ears, work=lambda: heard.append("work")), "hearer")
    hearer._take({"from": "another", **strange})
    assert "A wake-up could not be taken" in caplog.messages
    hearer._take({"from": "another", "work": [True]})
    assert heard == ["work"]


@pytest.mark.parametrize("told", ["events", "work"])
def test_it_puts_what_is_told_together_into_one_message(settings: Any, told: str) -> None:
    settings.CHANNEL_LAYERS = {"default": REDIS}
    sender = WakeUps(Ears(*[lambda *_: None] * 5), "s")
    sender.tell_events([LoggedEvents(SESSIONS[0], None, 7, (b"{}",))])
    sender.tell_listed(SESSIONS[:1])
    if told == "work":
        sender.tell_work()
    [message] = sender._messages()
    assert message["seqs"] == {str(SESSIONS[0]): 7}
    assert message["listed"] == [str(SESSIONS[0])]
    assert bool(message.get("work")) is (told == "work")
