#!/usr/bin/env python
"""Command line of Hermes: `python manage.py serve` starts the product."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")
    execute_from_command_line(sys.argv)
