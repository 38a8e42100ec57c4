"""Where rows come from when they are not arrays: files, memory maps, functions, a Dask cluster.

A :class:`Reader` can be read again and again, a piece at a time; who needs sums over rows, samples
of them, or predictions asks for no more.
"""

from rwf.sources.arrays import ArrayReader
from rwf.sources.blocks import BlockReader, Blocks
from rwf.sources.collections import Collection, is_collection
from rwf.sources.frames import columns_of, is_frame, values_of
from rwf.sources.opening import Data, Targets, names_of, open_inputs, open_rows
from rwf.sources.partitions import PartitionReader, computed
from rwf.sources.reader import Reader, is_reader
from rwf.sources.tables import TableReader

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
    "is_frame",
    "is_reader",
    "names_of",
    "open_inputs",
    "open_rows",
    "values_of",
]
