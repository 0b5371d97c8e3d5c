"""An app of the tests: what a test left in the database is taken out again, quickly."""
