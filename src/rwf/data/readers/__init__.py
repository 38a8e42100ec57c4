"""Where rows come from when they are not arrays: files, memory maps, functions, a Dask cluster.

A :class:`Reader` can be read again and again, a piece at a time; who needs sums over rows, samples
of them, or predictions asks for no more.
"""

from rwf.data.readers.arrays import ArrayReader
from rwf.data.readers.base import Reader, is_reader
from rwf.data.readers.blocks import BlockReader, Blocks
from rwf.data.readers.collections import Collection, is_collection
from rwf.data.readers.dask import PartitionReader, computed
from rwf.data.readers.dataframes import columns_of, is_dataframe, values_of
from rwf.data.readers.open import Data, Targets, names_of, open_inputs, open_rows
from rwf.data.readers.table import TableReader

__all__ = [
    "ArrayReader",
    "BlockReader",
    "Blocks",
    "Collection",
    "Data",
    "PartitionReader",
    "Reader",
    "TableReader",
    "Targets",
    "columns_of",
    "computed",
    "is_collection",
    "is_dataframe",
    "is_reader",
    "names_of",
    "open_inputs",
    "open_rows",
    "values_of",
]
