"""Experiments behind the numbers in the docs: runs are data, and tables are rebuilt from them.

A suite names tasks, methods and splits; every run of it becomes one line of JSON, in
``results/<suite>.jsonl``; tables, figures and generated sections of the docs are made from those
lines alone. See ``python -m experiments --help``.

Imports point only downward in this list::

    reporting   tables, figures and pages from stored rows
    runner      suites, runs, methods by name, and the store of rows
    baselines   the methods that rwf is compared with, one file each
    data        tables, simulated signals, speech, and how rows are split
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
"""The repository."""
