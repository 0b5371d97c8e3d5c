"""A database backend (`ENGINE`): Django's for SQLite, that waits for locks outside of SQLite."""
