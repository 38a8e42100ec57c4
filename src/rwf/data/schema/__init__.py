"""Tables with named and categorical columns: which a model takes, and how they become numbers."""

from rwf.data.schema.columns import CategoryColumn, NumberColumn, TableSchema, Unknown
from rwf.data.schema.encoded import EncodedReader, Fold
from rwf.data.schema.learn import Missing, learn_schema

__all__ = [
    "CategoryColumn",
    "EncodedReader",
    "Fold",
    "Missing",
    "NumberColumn",
    "TableSchema",
    "Unknown",
    "learn_schema",
]
