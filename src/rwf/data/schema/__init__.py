"""Tables with columns of all kinds: which a model takes, and how they become numbers."""

from rwf.data.schema.columns import (
    CategoryColumn,
    Column,
    DateColumn,
    NumberColumn,
    SpelledColumn,
    TargetEncodedColumn,
)
from rwf.data.schema.encoded import EncodedReader
from rwf.data.schema.folds import FOLDS, dealt, first_copies, rows_of_fold, with_targets
from rwf.data.schema.learn import MAX_ONE_HOT, Roles, learn_schema
from rwf.data.schema.table import Preparation, TableSchema

__all__ = [
    "FOLDS",
    "MAX_ONE_HOT",
    "CategoryColumn",
    "Column",
    "DateColumn",
    "EncodedReader",
    "NumberColumn",
    "Preparation",
    "Roles",
    "SpelledColumn",
    "TableSchema",
    "TargetEncodedColumn",
    "dealt",
    "first_copies",
    "learn_schema",
    "rows_of_fold",
    "with_targets",
]
