"""Colour refinement: the coarsest equitable partition of a graph with labelled edges (ties).

Elements of one class have the same initial colour and, for every label, the same number of neighbours in every class. The
algorithm (one-dimensional Weisfeiler-Leman) repeatedly hashes the colour of an element with the colours of its neighbours; Paige
and Tarjan (SIAM J. Comput. 16(6), 1987) need n log n steps. A collision of the 64-bit hashes is possible, so `is_equitable`
verifies the classes, and a fold relies only on this verification.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.records import dataclass

Ints = NDArray[np.signedinteger[Any]]
Words = NDArray[np.uint64]

_FIRST: Final = np.uint64(0x9E3779B97F4A7C15)
_SECOND: Final = np.uint64(0xBF58476D1CE4E5B9)
_THIRD: Final = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Ties:
    """The labelled ties of a graph in CSR form: both ends of every tie; element i has ties first[i] to first[i + 1]."""

    first: Ints
    other: Ints
    label: Ints

    @classmethod
    def of(cls, element_count: int, first_ends: Ints, second_ends: Ints, label: Ints) -> Ties:
        """Return the ties between `first_ends` and `second_ends`; each tie has different labels at its two ends."""
        ends = np.concatenate([first_ends, second_ends])
        others = np.concatenate([second_ends, first_ends])
        labels = np.concatenate([2 * label, 2 * label + 1])
        order = np.argsort(ends, kind="stable")
        first = np.zeros(element_count + 1, np.int64)
        np.cumsum(np.bincount(ends, minlength=element_count), out=first[1:])  # count
        return cls(first, others[order], labels[order])


def refine(colours: Ints, ties: Ties, most: int | None = None) -> Ints | None:
    """Return the class of each element: 0, 1, ... in order of their first elements.

    The result is None if more than `most` ties are visited, as in a graph whose elements differ gradually.
    Ties with one label between equal elements:

    >>> ties = Ties.of(4, np.array([0, 0, 1]), np.array([2, 3, 3]), np.array([0, 0, 0]))
    >>> refine(np.array([0, 0, 1, 1]), ties).tolist()
    [0, 1, 2, 3]
    >>> ring = Ties.of(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), np.zeros(4, int))
    >>> refine(np.zeros(4, int), ring).tolist()
    [0, 0, 0, 0]
    """
    classes = numbered(colours)
    count = int(classes.max(initial=-1)) + 1
    labels = mixed(mixed(ties.label.astype(np.uint64)))  # twice; otherwise class 1 with label 0 would equal class 0 with label 1
    looks = 0
    while count < len(colours):
        looks += len(ties.other)
        if most is not None and looks > most:
            return None
        around = mixed(mixed(classes.astype(np.uint64))[ties.other] ^ labels)
        finer = numbered(_sums(around, ties.first))
        finer = numbered(finer * np.int64(count) + classes)  # keep existing classes separate
        if (distinct := int(finer.max(initial=-1)) + 1) == count:
            return classes
        classes, count = finer, distinct
    return classes


def is_equitable(colours: Ints, ties: Ties, classes: Ints) -> bool:
    """Return whether elements of a class have equal initial colours and, for every label, equally many neighbours per class."""
    leader = np.unique(classes, return_index=True)[1][classes]
    if not (colours == colours[leader]).all():
        return False
    count = np.diff(ties.first)
    if not (count == count[leader]).all():
        return False
    where = np.repeat(np.arange(len(classes)), count)
    as_leader = np.arange(len(where)) - ties.first[where] + ties.first[leader[where]]
    around = classes[ties.other]
    unlike = ticks.distinct(where[(ties.label != ties.label[as_leader]) | (around != around[as_leader])])
    if not len(unlike):  # equal order of neighbours
        return True
    is_looked_at = np.zeros(len(classes), np.bool_)
    is_looked_at[unlike] = True
    unlike_rows = np.flatnonzero(is_looked_at[where])
    is_looked_at[leader[unlike]] = True
    rows = np.flatnonzero(is_looked_at[where])
    rows = rows[np.lexsort((around[rows], ties.label[rows], where[rows]))]
    order = np.arange(len(where))
    order[is_looked_at[where]] = rows
    label, beside = ties.label[order], around[order]
    leader_rows = as_leader[unlike_rows]  # all other elements have the order of their leader
    return bool((label[unlike_rows] == label[leader_rows]).all() and (beside[unlike_rows] == beside[leader_rows]).all())


def numbered(values: NDArray[Any]) -> Ints:
    """Return numbers 0, 1, ... for equal values, in order of first occurrence."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    numbers: Ints = rank[inverse.ravel()]
    return numbers


def _sums(values: Words, first: Ints) -> Words:
    """Sum of each element's values modulo 2^64, independent of their order."""
    total = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=total[1:])
    sums: Words = total[first[1:]] - total[first[:-1]]
    return sums


def mixed(words: Words) -> Words:
    """Return the SplitMix64 hash of each word (Steele, Lea, Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        words = words + _FIRST
        words = (words ^ (words >> np.uint64(30))) * _SECOND
        words = (words ^ (words >> np.uint64(27))) * _THIRD
        return words ^ (words >> np.uint64(31))
