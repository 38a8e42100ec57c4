"""Tables with names and texts: which columns a model takes, and how they become numbers.

What is learned of a table, the categories of its texts and what stands for a missing value, is a
:class:`TableSchema`. With it, an :class:`EncodedReader` gives rows of numbers, as all sources do.
"""

from rwf.data.schema.columns import CategoryColumn, NumberColumn, TableSchema, Unknown
from rwf.data.schema.encoded import EncodedReader, Fold
from rwf.data.schema.learn import Missing, learn_schema
from rwf.data.schema.open import open_any

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
