"""Faults that show only when threads meet."""

from gateway_app import cached_agent
from gateway_app.agent_cache import AgentCache
from sessions_app import transcript
from tests.mutants.catalogue import CATALOGUE, mutant
from tests.mutants.clock import rewrite


@mutant("threads: receiver without compare", proof="threads")
def _() -> None:
    CATALOGUE["receiver without compare"].apply()


@mutant("threads: an agent is patched without its lock", proof="threads", databases=("sqlite",))
def _() -> None:
    """On SQLite only: PostgreSQL's commits keep receivers too far apart to meet in a minute."""

    class NoLock:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

        def acquire(self) -> None: ...

        def release(self) -> None: ...

    real = AgentCache._admit

    def admit(self: AgentCache, agent: cached_agent.CachedAgent) -> cached_agent.CachedAgent:
        agent.lock = NoLock()  # type: ignore[assignment]
        return real(self, agent)

    AgentCache._admit = admit  # type: ignore[method-assign]


@mutant(
    "threads: a service reads `from` without the lock", proof="threads", databases=("postgresql",)
)
def _() -> None:
    real = transcript.lock_session

    def lock_session(session_id: object) -> object:
        sql = transcript.db.lock_sql
        transcript.db.lock_sql = lambda: ""
        try:
            return real(session_id)  # type: ignore[arg-type]
        finally:
            transcript.db.lock_sql = sql

    transcript.lock_session = lock_session  # type: ignore[assignment]


@mutant(
    "threads: a row is stamped without the session's lock",
    proof="threads",
    databases=("postgresql",),
)
def _() -> None:
    rewrite(
        {},
        {"hermes_message_stamp": (
            "WHERE id = NEW.session_id FOR NO KEY UPDATE;", "WHERE id = NEW.session_id;",
        )},
    )  # fmt: skip
