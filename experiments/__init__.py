"""Experiments behind the numbers in the docs: runs are data, and tables are rebuilt from them.

A suite names tasks, methods and splits; every run of it becomes one line of JSON, in
``results/<suite>.jsonl``; tables, figures and generated sections of the docs are made from those
lines alone. See ``python -m experiments --help``.
"""
