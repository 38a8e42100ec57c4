"""The tree engine: local atoms make the posterior of a hundred thousand columns exact in seconds.

Where the dense engine has one Gram matrix, its factor and its inverse, this one has as many small
ones as the dissection of the atoms has nodes, and the same numbers come out.
"""

from rwf.inference.multifrontal.atom_tree import AtomTree
from rwf.inference.multifrontal.empirical_bayes import (
    TreeEmpiricalBayes,
    power_law,
    tree_fixed_point,
)
from rwf.inference.multifrontal.lattice import draw_multifrontal_lattice
from rwf.inference.multifrontal.memory import (
    TreeTooLargeError,
    fitting,
    largest_that_fits,
    memory_needed,
)
from rwf.inference.multifrontal.moments import TreeMoments, accumulate_tree, rows_at_once
from rwf.inference.multifrontal.posterior import TreePosterior

__all__ = [
    "AtomTree",
    "TreeEmpiricalBayes",
    "TreeMoments",
    "TreePosterior",
    "TreeTooLargeError",
    "accumulate_tree",
    "draw_multifrontal_lattice",
    "fitting",
    "largest_that_fits",
    "memory_needed",
    "power_law",
    "rows_at_once",
    "tree_fixed_point",
]
