"""What stands further up or down than a page brings at first, and how a person gets there."""

import json
import sqlite3

from tests.browser.chat_page import PATIENCE_MS
from tests.browser.served import Served

HELD_AT_THE_TOP = """() => {
  document.querySelector(".thread").scrollTop = 0;
  return document.querySelector("[data-part=older]").hidden;
}"""


HELD_AT_THE_LISTS_END = """() => {
  const list = document.querySelector("[data-part=sideList]");
  list.scrollTop = list.scrollHeight;
  return document.querySelector("[data-part=moreSessions]").hidden;
}"""


def add_older_rows(served: Served, session: str, count: int) -> None:
    """Rows before everything the session has."""
    add_rows(served, session, [(number + 1, f"Older row {number}") for number in range(count)])


def add_rows(served: Served, session: str, rows: list[tuple[int, str]]) -> None:
    """Rows of another writer, as (position, text); position 0: at the end."""
    session_id = session.replace("-", "")
    with sqlite3.connect(served.database, timeout=PATIENCE_MS / 1000) as database:
        database.executemany(
            "INSERT INTO sessions_app_message (session_id, position, kind, parts)"
            " VALUES (?, ?, 'user', ?)",
            [
                (session_id, position, json.dumps([{"type": "text", "text": text}]))
                for position, text in rows
            ],
        )
    database.close()
