"""Faults put into the product on purpose: each must be caught by the proof of coherence.

`python -m tests.mutants` applies one at a time, each in a process and a database of its own.
"""
