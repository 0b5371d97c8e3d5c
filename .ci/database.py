"""Makes the database of a postgres:// URL where it is missing; fails if the server refuses."""

import sys
from urllib.parse import urlsplit, urlunsplit

import psycopg

url = urlsplit(sys.argv[1])
name = url.path.lstrip("/")
server = urlunsplit(url._replace(path="/postgres"))
with psycopg.connect(server, autocommit=True) as connection:
    if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
        connection.execute(f'CREATE DATABASE "{name}"')
