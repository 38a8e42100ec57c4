"""Tables with names and texts: which columns a model takes, and how they become numbers.

What is learned of a table, the categories of its texts and what stands for a missing value, is a
:class:`TableSchema`. With it, an :class:`EncodedReader` gives rows of numbers, as all sources do.
"""

from rwf.tables.columns import CategoryColumn, NumberColumn, TableSchema, Unknown
from rwf.tables.frames import open_any
from rwf.tables.learning import Missing, learn_schema
from rwf.tables.reading import EncodedReader, Fold

__all__ = [
    "CategoryColumn",
    "EncodedReader",
    "Fold",
    "Missing",
    "NumberColumn",
    "TableSchema",
    "Unknown",
    "learn_schema",
    "open_any",
]
