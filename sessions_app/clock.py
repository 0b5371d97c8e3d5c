"""The transcript clock: triggers that no write path can forget.

In the writer's own transaction, for every INSERT, DELETE, TRUNCATE and every UPDATE that changes a
visible field of `Message` (`models.VISIBLE_FIELDS`):

* `Session.revision` rises, and the changed rows carry the revision they changed at;
* `Session.removed_revision` is the revision of the last removal: a DELETE, or a change of session
  or position. Deleting a row that was not active raises it only to that row's own revision;
* `Session.message_count` and `Session.next_block` follow;
* a row that was inserted at position 0 gets the next block.

`Session.incarnation` is random at every INSERT of a session. Guard triggers keep a stale `save()`
from turning any of it back. SQLite counts a row at a time; PostgreSQL stamps rows before the change
and advances the session once a statement, so that a bulk write costs one version of the session.
"""

import hashlib
from typing import Final

from django.db.backends.base.base import BaseDatabaseWrapper

from sessions_app.models import BLOCK, VISIBLE_FIELDS, Message, Session

SESSION: Final = Session._meta.db_table
MESSAGE: Final = Message._meta.db_table

_COLUMNS: Final = tuple(
    str(field.column) for field in Message._meta.concrete_fields if field.name in VISIBLE_FIELDS
)
_CONTENT: Final = tuple(name for name in _COLUMNS if name not in {"session_id", "position"})
_GUARDED: Final = (
    "revision, removed_revision, incarnation, message_count, next_block, event_seq, run_generation"
)

_RANDOM_SQLITE: Final = "(random() & 1152921504606846975) | 1"

# --- SQLite: row triggers; their order among themselves is undefined, so each one uses max() ---

_SQLITE: Final = {
    "hermes_message_insert": f"""
CREATE TRIGGER hermes_message_insert AFTER INSERT ON {MESSAGE} BEGIN
  UPDATE {SESSION} SET
    revision = revision + 1,
    message_count = message_count + 1,
    next_block = CASE NEW.position WHEN 0 THEN next_block + 1
      ELSE max(next_block, NEW.position / {BLOCK} + 1) END
  WHERE id = NEW.session_id;
  UPDATE {MESSAGE} SET
    revision = coalesce((SELECT revision FROM {SESSION} WHERE id = NEW.session_id), 1),
    position = CASE NEW.position WHEN 0 THEN coalesce(
      (SELECT (next_block - 1) * {BLOCK} + 1 FROM {SESSION} WHERE id = NEW.session_id),
      {BLOCK} + 1) ELSE position END
  WHERE id = NEW.id;
END""",
    "hermes_message_change": f"""
CREATE TRIGGER hermes_message_change AFTER UPDATE OF {", ".join(_CONTENT)} ON {MESSAGE}
WHEN {" OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in _CONTENT)} BEGIN
  UPDATE {SESSION} SET revision = revision + 1 WHERE id = NEW.session_id;
  UPDATE {MESSAGE} SET
    revision = coalesce((SELECT revision FROM {SESSION} WHERE id = NEW.session_id), revision + 1)
  WHERE id = NEW.id;
END""",
    "hermes_message_move": f"""
CREATE TRIGGER hermes_message_move AFTER UPDATE OF session_id, position ON {MESSAGE}
WHEN OLD.session_id IS NOT NEW.session_id
  OR (OLD.position IS NOT NEW.position AND OLD.position <> 0) BEGIN
  UPDATE {SESSION} SET
    revision = revision + 1,
    removed_revision = revision + 1,
    message_count = message_count - (OLD.session_id IS NOT NEW.session_id)
  WHERE id = OLD.session_id;
  UPDATE {SESSION} SET
    revision = revision + 1,
    message_count = message_count + (OLD.session_id IS NOT NEW.session_id),
    next_block = CASE NEW.position WHEN 0 THEN next_block + 1
      ELSE max(next_block, NEW.position / {BLOCK} + 1) END
  WHERE id = NEW.session_id;
  UPDATE {MESSAGE} SET
    revision = coalesce((SELECT revision FROM {SESSION} WHERE id = NEW.session_id), 1),
    position = CASE NEW.position WHEN 0 THEN coalesce(
      (SELECT (next_block - 1) * {BLOCK} + 1 FROM {SESSION} WHERE id = NEW.session_id),
      {BLOCK} + 1) ELSE position END
  WHERE id = NEW.id;
END""",
    "hermes_message_delete": f"""
CREATE TRIGGER hermes_message_delete AFTER DELETE ON {MESSAGE} BEGIN
  UPDATE {SESSION} SET
    revision = revision + 1,
    message_count = message_count - 1,
    removed_revision = max(removed_revision,
      CASE OLD.state WHEN 'active' THEN revision + 1 ELSE OLD.revision END)
  WHERE id = OLD.session_id;
END""",
    "hermes_message_guard": f"""
CREATE TRIGGER hermes_message_guard AFTER UPDATE OF revision ON {MESSAGE}
WHEN OLD.session_id IS NEW.session_id AND NEW.revision <> OLD.revision AND NEW.revision <>
  coalesce((SELECT revision FROM {SESSION} WHERE id = NEW.session_id), NEW.revision) BEGIN
  UPDATE {MESSAGE} SET revision = max(OLD.revision, min(revision,
    (SELECT revision FROM {SESSION} WHERE id = NEW.session_id)))
  WHERE id = NEW.id;
END""",
    "hermes_session_insert": f"""
CREATE TRIGGER hermes_session_insert AFTER INSERT ON {SESSION} BEGIN
  UPDATE {SESSION} SET incarnation = 0 WHERE id = NEW.id;
  UPDATE {SESSION} SET
    message_count = (SELECT count(*) FROM {MESSAGE} WHERE session_id = NEW.id),
    revision = max(revision,
      coalesce((SELECT max(revision) FROM {MESSAGE} WHERE session_id = NEW.id), 0)),
    next_block = max(next_block, 1,
      coalesce((SELECT max(position) / {BLOCK} + 1 FROM {MESSAGE} WHERE session_id = NEW.id), 1)),
    incarnation = {_RANDOM_SQLITE}
  WHERE id = NEW.id;
END""",
    "hermes_session_guard": f"""
CREATE TRIGGER hermes_session_guard AFTER UPDATE OF {_GUARDED} ON {SESSION}
WHEN OLD.incarnation <> 0 AND NEW.incarnation <> 0 AND (
  NEW.incarnation <> OLD.incarnation
  OR NEW.revision < OLD.revision
  OR NEW.removed_revision < OLD.removed_revision
  OR NEW.removed_revision > NEW.revision
  OR (NEW.revision = OLD.revision AND (NEW.removed_revision <> OLD.removed_revision
    OR NEW.message_count <> OLD.message_count))
  OR NEW.next_block < OLD.next_block
  OR NEW.event_seq < OLD.event_seq
  OR NEW.run_generation < OLD.run_generation) BEGIN
  UPDATE {SESSION} SET
    incarnation = OLD.incarnation,
    revision = max(OLD.revision, NEW.revision),
    removed_revision = CASE WHEN NEW.revision > OLD.revision
      THEN min(NEW.revision, max(OLD.removed_revision, NEW.removed_revision))
      ELSE OLD.removed_revision END,
    message_count = CASE WHEN NEW.revision > OLD.revision
      THEN NEW.message_count ELSE OLD.message_count END,
    next_block = max(OLD.next_block, NEW.next_block),
    event_seq = max(OLD.event_seq, NEW.event_seq),
    run_generation = max(OLD.run_generation, NEW.run_generation)
  WHERE id = NEW.id;
END""",
}

# --- PostgreSQL: stamp each row before the change, advance each session once a statement ---

_SAME: Final = " AND ".join(f"NEW.{name} IS NOT DISTINCT FROM OLD.{name}" for name in _COLUMNS)

_PG_FUNCTIONS: Final = {
    "hermes_message_stamp": f"""
DECLARE
  base bigint;
  block bigint;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF {_SAME} THEN
      NEW.revision := OLD.revision;
      RETURN NEW;
    END IF;
    IF NEW.session_id <> OLD.session_id OR NEW.position <> OLD.position THEN
      PERFORM 1 FROM {SESSION} WHERE id IN (OLD.session_id, NEW.session_id)
        ORDER BY id FOR NO KEY UPDATE;
      UPDATE {SESSION} SET
        revision = revision + 1,
        removed_revision = revision + 1,
        message_count = message_count - (NEW.session_id <> OLD.session_id)::int
      WHERE id = OLD.session_id;
      UPDATE {SESSION} SET
        revision = revision + 1,
        message_count = message_count + (NEW.session_id <> OLD.session_id)::int,
        next_block = CASE NEW.position WHEN 0 THEN next_block + 1
          ELSE greatest(next_block, NEW.position / {BLOCK} + 1) END
      WHERE id = NEW.session_id RETURNING revision, next_block - 1 INTO base, block;
      IF NEW.position = 0 THEN
        NEW.position := coalesce(block, 1) * {BLOCK} + 1;
      END IF;
      NEW.revision := coalesce(base, 1);
      RETURN NEW;
    END IF;
  END IF;
  SELECT revision INTO base FROM {SESSION} WHERE id = NEW.session_id FOR NO KEY UPDATE;
  IF TG_OP = 'INSERT' AND NEW.position = 0 THEN
    UPDATE {SESSION} SET next_block = next_block + 1
    WHERE id = NEW.session_id RETURNING next_block - 1 INTO block;
    NEW.position := coalesce(block, 1) * {BLOCK} + 1;
  END IF;
  NEW.revision := coalesce(base, 0) + 1;
  RETURN NEW;
END""",
    "hermes_message_inserted": f"""
BEGIN
  UPDATE {SESSION} s SET
    revision = s.revision + 1,
    message_count = s.message_count + n.added,
    next_block = greatest(s.next_block, n.top / {BLOCK} + 1)
  FROM (SELECT session_id, count(*) AS added, max(position) AS top
        FROM new_rows GROUP BY session_id) n
  WHERE s.id = n.session_id;
  RETURN NULL;
END""",
    "hermes_message_updated": f"""
BEGIN
  UPDATE {SESSION} s SET revision = n.top
  FROM (SELECT session_id, max(revision) AS top FROM new_rows GROUP BY session_id) n
  WHERE s.id = n.session_id AND n.top > s.revision;
  RETURN NULL;
END""",
    "hermes_message_deleted": f"""
BEGIN
  PERFORM 1 FROM {SESSION} WHERE id IN (SELECT session_id FROM old_rows)
    ORDER BY id FOR NO KEY UPDATE;
  UPDATE {SESSION} s SET
    revision = s.revision + 1,
    message_count = s.message_count - n.gone,
    removed_revision = greatest(s.removed_revision,
      CASE WHEN n.active THEN s.revision + 1 ELSE n.top END)
  FROM (SELECT session_id, count(*) AS gone, bool_or(state = 'active') AS active,
          max(revision) AS top
        FROM old_rows GROUP BY session_id) n
  WHERE s.id = n.session_id;
  RETURN NULL;
END""",
    "hermes_message_truncated": f"""
BEGIN
  UPDATE {SESSION} SET
    revision = revision + 1, removed_revision = revision + 1, message_count = 0
  WHERE message_count > 0;
  RETURN NULL;
END""",
    "hermes_session_inserted": f"""
BEGIN
  NEW.incarnation := ('x' || substr(md5(gen_random_uuid()::text), 1, 15))::bit(60)::bigint | 1;
  SELECT count(*), greatest(NEW.revision, coalesce(max(revision), 0)),
    greatest(NEW.next_block, 1, coalesce(max(position) / {BLOCK} + 1, 1))
  INTO NEW.message_count, NEW.revision, NEW.next_block
  FROM {MESSAGE} WHERE session_id = NEW.id;
  RETURN NEW;
END""",
    "hermes_session_guard": """
BEGIN
  NEW.incarnation := OLD.incarnation;
  IF NEW.revision <= OLD.revision THEN
    NEW.revision := OLD.revision;
    NEW.removed_revision := OLD.removed_revision;
    NEW.message_count := OLD.message_count;
  ELSE
    NEW.removed_revision :=
      least(NEW.revision, greatest(OLD.removed_revision, NEW.removed_revision));
  END IF;
  NEW.next_block := greatest(OLD.next_block, NEW.next_block);
  NEW.event_seq := greatest(OLD.event_seq, NEW.event_seq);
  NEW.run_generation := greatest(OLD.run_generation, NEW.run_generation);
  RETURN NEW;
END""",
}

_PG_TRIGGERS: Final = {
    "hermes_message_stamp": (MESSAGE, "BEFORE INSERT OR UPDATE", "", "ROW"),
    "hermes_message_inserted": (
        MESSAGE, "AFTER INSERT", "REFERENCING NEW TABLE AS new_rows", "STATEMENT",
    ),
    "hermes_message_updated": (
        MESSAGE, "AFTER UPDATE", "REFERENCING NEW TABLE AS new_rows", "STATEMENT",
    ),
    "hermes_message_deleted": (
        MESSAGE, "AFTER DELETE", "REFERENCING OLD TABLE AS old_rows", "STATEMENT",
    ),
    "hermes_message_truncated": (MESSAGE, "AFTER TRUNCATE", "", "STATEMENT"),
    "hermes_session_inserted": (SESSION, "BEFORE INSERT", "", "ROW"),
    "hermes_session_guard": (SESSION, f"BEFORE UPDATE OF {_GUARDED}", "", "ROW"),
}  # fmt: skip


def _pg_definition(name: str) -> tuple[str, str]:
    """The function and the trigger called `name`, as two statements."""
    table, event, referencing, level = _PG_TRIGGERS[name]
    function = (
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql"
        f" AS $hermes${_PG_FUNCTIONS[name]}$hermes$"
    )
    trigger = (
        f"CREATE OR REPLACE TRIGGER {name} {event} ON {table} {referencing}"
        f" FOR EACH {level} EXECUTE FUNCTION {name}()"
    )
    return function, trigger


def _mark(name: str) -> str:
    """The comment that tells an installed PostgreSQL trigger from an older one."""
    return hashlib.sha256("".join(_pg_definition(name)).encode()).hexdigest()


def differences(connection: BaseDatabaseWrapper) -> list[str]:
    """Names of triggers that are missing, disabled or not as this version defines them."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            found = dict(cursor.fetchall())
            cursor.execute("PRAGMA recursive_triggers")
            recursive = ["recursive_triggers=ON"] if cursor.fetchone()[0] else []
            return recursive + [
                name for name, sql in _SQLITE.items() if found.get(name, "") != sql.strip()
            ]
        cursor.execute(
            "SELECT t.tgname, t.tgenabled, p.prosrc, obj_description(t.oid, 'pg_trigger')"
            " FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
            " WHERE t.tgrelid IN (%s::regclass, %s::regclass) AND NOT t.tgisinternal",
            [MESSAGE, SESSION],
        )
        installed = {name: (on, body, mark) for name, on, body, mark in cursor.fetchall()}
    return [
        name
        for name in _PG_TRIGGERS
        if installed.get(name) != ("O", _PG_FUNCTIONS[name], _mark(name))
    ]


def install(connection: BaseDatabaseWrapper) -> list[str]:
    """Makes every trigger what this version defines; the names it had to write.

    Runs no DDL where nothing differs. PostgreSQL's triggers are replaced, never dropped.
    """
    changed = [name for name in differences(connection) if name in _SQLITE or name in _PG_TRIGGERS]
    with connection.cursor() as cursor:
        for name in changed:
            if connection.vendor == "sqlite":
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
                cursor.execute(_SQLITE[name])
                continue
            for statement in _pg_definition(name):
                cursor.execute(statement)
            table = _PG_TRIGGERS[name][0]
            cursor.execute(f"COMMENT ON TRIGGER {name} ON {table} IS '{_mark(name)}'")
    return changed


def drop(connection: BaseDatabaseWrapper) -> None:
    """Drops SQLite's triggers before a migration rebuilds their tables (it would lose them)."""
    with connection.cursor() as cursor:
        for name in _SQLITE:
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}")


def tick_all(connection: BaseDatabaseWrapper) -> None:
    """Raises every session's clock once, as a removal: no cached agent keeps its baseline."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {SESSION} SET revision = revision + 1, removed_revision = revision + 1"
        )
