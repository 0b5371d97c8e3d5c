"""What Hermes costs, beside a direct client and a bare relay in the same run: `python -m bench`."""
