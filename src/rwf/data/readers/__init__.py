"""Sources of rows that are not arrays in memory: files, memory maps, functions, a Dask cluster."""

from rwf.data.readers.arrays import ArrayReader
from rwf.data.readers.base import Reader
from rwf.data.readers.blocks import BlockReader
from rwf.data.readers.dask import DaskReader
from rwf.data.readers.dataframes import (
    arrow_column,
    arrow_table,
    columns_of,
    is_dataframe,
    values_of,
)
from rwf.data.readers.files import LoadedTable
from rwf.data.readers.formats import FORMATS, open_table
from rwf.data.readers.open import Data, Targets, is_collection, names_of, open_inputs, open_rows
from rwf.data.readers.table import TableReader

__all__ = [
    "FORMATS",
    "ArrayReader",
    "BlockReader",
    "DaskReader",
    "Data",
    "LoadedTable",
    "Reader",
    "TableReader",
    "Targets",
    "arrow_column",
    "arrow_table",
    "columns_of",
    "is_collection",
    "is_dataframe",
    "names_of",
    "open_inputs",
    "open_rows",
    "open_table",
    "values_of",
]
