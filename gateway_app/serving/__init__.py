"""What `manage.py serve` does: look before it starts, run Daphne, drain."""
