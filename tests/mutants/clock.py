"""Faults of the triggers."""

from sessions_app import clock
from tests.mutants.catalogue import mutant


def rewrite(sqlite: dict[str, tuple[str, str]], postgres: dict[str, tuple[str, str]]) -> None:
    """Replaces text in the definitions, before they are installed. The text must be there."""
    for definitions, changes in ((clock._SQLITE, sqlite), (clock._PG_FUNCTIONS, postgres)):
        for name, (old, new) in changes.items():
            assert old in definitions[name], (name, old)
            definitions[name] = definitions[name].replace(old, new)


def leave_out(*names: str) -> None:
    """Triggers that are never installed."""
    assert set(names) <= clock._SQLITE.keys() | clock._PG_TRIGGERS.keys(), names
    for name in names:
        clock._SQLITE.pop(name, None)
        clock._PG_TRIGGERS.pop(name, None)


@mutant("no session guard trigger")
def _() -> None:
    leave_out("hermes_session_guard")


@mutant(
    "no row-revision guard",
    databases=("sqlite",),
    proof="tests/sessions_app/test_clock.py::test_it_refuses_a_row_revision_from_outside",
)
def _() -> None:
    leave_out("hermes_message_guard")


@mutant("no incarnation trigger")
def _() -> None:
    leave_out("hermes_session_insert", "hermes_session_inserted")


def _ignored_column(column: str) -> None:
    rewrite(
        {"hermes_message_change": (f"OLD.{column} IS NOT NEW.{column}", "0")},
        {"hermes_message_stamp": (f"NEW.{column} IS NOT DISTINCT FROM OLD.{column}", "true")},
    )


@mutant("column ignored: state")
def _() -> None:
    _ignored_column("state")


@mutant("column ignored: kind")
def _() -> None:
    _ignored_column("kind")


@mutant("column ignored: parts")
def _() -> None:
    _ignored_column("parts")


@mutant("column ignored: sent_parts")
def _() -> None:
    _ignored_column("sent_parts")


@mutant("every UPDATE ticks, also of what no model sees")
def _() -> None:
    columns = ", ".join(clock._CONTENT)
    when = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in clock._CONTENT)
    rewrite(
        {"hermes_message_change": (f"{columns} ON {clock.MESSAGE}\nWHEN {when}",
                                   f"{columns} ON {clock.MESSAGE}\nWHEN 1")},
        {"hermes_message_stamp": (f"IF {clock._SAME} THEN", "IF false THEN")},
    )  # fmt: skip


@mutant("a delete is no removal")
def _() -> None:
    rewrite(
        {"hermes_message_delete": ("WHEN 'active' THEN revision + 1 ELSE OLD.revision",
                                   "WHEN '' THEN 0 ELSE 0")},
        {"hermes_message_deleted": ("WHEN n.active THEN s.revision + 1 ELSE n.top",
                                    "WHEN n.active THEN 0 ELSE 0")},
    )  # fmt: skip


@mutant("a hidden row's delete is no removal")
def _() -> None:
    rewrite(
        {"hermes_message_delete": ("ELSE OLD.revision END", "ELSE 0 END")},
        {"hermes_message_deleted": ("ELSE n.top END", "ELSE 0 END")},
    )


@mutant("a hidden row's delete reloads every cache")
def _() -> None:
    rewrite(
        {"hermes_message_delete": ("ELSE OLD.revision END", "ELSE revision + 1 END")},
        {"hermes_message_deleted": ("ELSE n.top END", "ELSE s.revision + 1 END")},
    )


@mutant("a move of position is no removal")
def _() -> None:
    rewrite(
        {"hermes_message_move": (
            "removed_revision = revision + 1,",
            "removed_revision = CASE WHEN OLD.session_id IS NOT NEW.session_id"
            " THEN revision + 1 ELSE removed_revision END,",
        )},
        {"hermes_message_stamp": (
            "removed_revision = revision + 1,",
            "removed_revision = CASE WHEN NEW.session_id <> OLD.session_id"
            " THEN revision + 1 ELSE removed_revision END,",
        )},
    )  # fmt: skip


@mutant("a move to another session is no removal")
def _() -> None:
    rewrite(
        {"hermes_message_move": (
            "removed_revision = revision + 1,",
            "removed_revision = CASE WHEN OLD.session_id IS NEW.session_id"
            " THEN revision + 1 ELSE removed_revision END,",
        )},
        {"hermes_message_stamp": (
            "removed_revision = revision + 1,",
            "removed_revision = CASE WHEN NEW.session_id = OLD.session_id"
            " THEN revision + 1 ELSE removed_revision END,",
        )},
    )  # fmt: skip


@mutant("a moved row keeps its revision")
def _() -> None:
    rewrite(
        {"hermes_message_move": (
            "revision = coalesce((SELECT revision FROM sessions_app_session"
            " WHERE id = NEW.session_id), 1),\n    position",
            "position",
        )},
        {"hermes_message_stamp": ("NEW.revision := coalesce(base, 1);", "")},
    )  # fmt: skip


@mutant("rows are counted before ignore_conflicts drops them", databases=("postgresql",))
def _() -> None:
    rewrite(
        {},
        {
            "hermes_message_stamp": (
                "  NEW.revision := coalesce(base, 0) + 1;\n",
                "  NEW.revision := coalesce(base, 0) + 1;\n  IF TG_OP = 'INSERT' THEN UPDATE"
                f" {clock.SESSION} SET revision = revision + 1, message_count = message_count + 1"
                " WHERE id = NEW.session_id; END IF;\n",
            ),
            "hermes_message_inserted": ("s.message_count + n.added", "s.message_count"),
        },
    )


@mutant("a deleted row still counts")
def _() -> None:
    rewrite(
        {"hermes_message_delete": ("message_count = message_count - 1,", "")},
        {"hermes_message_deleted": ("message_count = s.message_count - n.gone,", "")},
    )


@mutant("a row without a position goes into the last block")
def _() -> None:
    last = (
        f"(SELECT max(m.position) + 1 FROM {clock.MESSAGE} m WHERE m.session_id = NEW.session_id)"
    )
    own = f"coalesce(block, 1) * {clock.BLOCK} + 1"
    end = ";\n  END IF;\n  NEW.revision := coalesce(base, 0)"
    rewrite(
        {"hermes_message_insert": (
            "position = CASE NEW.position WHEN 0 THEN coalesce(\n",
            f"position = CASE NEW.position WHEN 0 THEN coalesce({last},\n",
        )},
        {"hermes_message_stamp": (own + end, f"coalesce({last}, {own}){end}")},
    )  # fmt: skip


@mutant("a row's own position leaves next_block behind")
def _() -> None:
    rewrite(
        {"hermes_message_insert": (f"ELSE max(next_block, NEW.position / {clock.BLOCK} + 1) END",
                                   "ELSE next_block END")},
        {"hermes_message_inserted": (f"greatest(s.next_block, n.top / {clock.BLOCK} + 1)",
                                     "s.next_block")},
    )  # fmt: skip


@mutant("inserts do not move the clock")
def _() -> None:
    rewrite(
        {"hermes_message_insert": ("revision = revision + 1,", "")},
        {"hermes_message_inserted": ("revision = s.revision + 1,", "")},
    )
