"""Whether PostgreSQL has connections enough for all processes of a server."""

from typing import cast

from django.db import connection

_ROOM = """
SELECT current_setting('max_connections')::int,
    current_setting('superuser_reserved_connections')::int
        + coalesce(current_setting('reserved_connections', true)::int, 0),
    role.rolname, CASE WHEN role.rolsuper THEN -1 ELSE role.rolconnlimit END,
    database.datname, CASE WHEN role.rolsuper THEN -1 ELSE database.datconnlimit END
FROM pg_roles role, pg_database database
WHERE role.rolname = session_user AND database.datname = current_database()
"""


def too_little_room(workers: int) -> str | None:
    """A sentence for whoever starts so many; None if there is nothing to say."""
    if connection.vendor != "postgresql":
        return None
    each = most_connections()
    with connection.cursor() as cursor:
        cursor.execute(_ROOM)
        most, reserved, role, role_limit, database, database_limit = cursor.fetchone()
    wanted = workers * each
    bounds = [
        (most - reserved, f"max_connections to {wanted + reserved} or more"),
        (role_limit, f"the CONNECTION LIMIT of the role {role} to {wanted} or more"),
        (database_limit, f"the CONNECTION LIMIT of the database {database} to {wanted} or more"),
    ]
    room, mend = min(bound for bound in bounds if bound[0] >= 0)
    if wanted <= room:
        return None
    fewer = f", or --workers to {room // each}" if workers > 1 and room >= each else ""
    return (
        f"This server may open {wanted} connections to PostgreSQL ({each} for each process), and"
        f" there are {room}: people would wait when all are in use. Set {mend}{fewer}."
    )


def most_connections() -> int:
    """As many connections of PostgreSQL's one process opens at most."""
    pool = connection.settings_dict["OPTIONS"]["pool"]
    return cast(int, pool["max_size"])
