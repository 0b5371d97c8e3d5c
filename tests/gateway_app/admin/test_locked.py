"""A page that has to wait for SQLite's lock: nobody else does."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.http import HttpResponse

from tests.gateway_app.admin.conftest import logged_in
from tests.sqlite_lock import Rings, held_elsewhere


@pytest.mark.django_db(transaction=True)
def test_it_lets_other_threads_collect_garbage_while_it_waits(root) -> None:
    if connection.vendor != "sqlite":
        return  # no connection of PostgreSQL shares a mutex with its cursors
    client, rings, asked = logged_in(root), Rings(), threading.Event()

    def save() -> HttpResponse:
        rings.make(connection, lambda sql: sql.startswith("BEGIN") and asked.set())
        try:
            return client.post("/admin/auth/group/add/", {"name": "Late"})
        finally:
            connection.close()

    gc.disable()
    try:
        with (
            held_elsewhere(connection.settings_dict["NAME"]) as release,
            ThreadPoolExecutor(1) as pool,
        ):
            saved = pool.submit(save)
            assert asked.wait(60)
            rings.collect()
            assert not saved.done()
            release()
            assert saved.result(60).status_code == 302
    finally:
        gc.enable()
    assert Group.objects.filter(name="Late").exists()
