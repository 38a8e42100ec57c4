"""The multifrontal solver: the exact posterior of a hundred thousand local atoms in seconds.

The dense solver has one Gram matrix, its factor and its inverse. This one has a small one for every
node of the dissection of the atoms, and gives the same posterior.
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
    draw_within,
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
    "draw_within",
    "largest_that_fits",
    "memory_needed",
    "power_law",
    "rows_at_once",
    "tree_fixed_point",
]
