"""Colour refinement: the coarsest classes of things with identical neighbourhoods.

Things of one class have the same first colour, and by every label equally many neighbours of every class (an equitable
partition). Found by rounds in which a thing's colour is mixed with those around it (one-dimensional Weisfeiler-Leman;
Paige and Tarjan, SIAM J. Comput. 16(6), 1987, do it in n log n). The mixing is a hash of 64 bits, so that two things could
meet by chance: `is_equitable` compares the classes themselves and is what a fold stands on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass

Ints = NDArray[np.signedinteger[Any]]
Words = NDArray[np.uint64]

_FIRST: Final = np.uint64(0x9E3779B97F4A7C15)
_SECOND: Final = np.uint64(0xBF58476D1CE4E5B9)
_THIRD: Final = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Ties:
    """Pairs of joined things: both ends of every tie, in order of the things; thing i has ties first[i] to first[i + 1]."""

    first: Ints
    other: Ints
    label: Ints

    @classmethod
    def of(cls, things: int, first_ends: Ints, second_ends: Ints, label: Ints) -> Ties:
        """Ties between `one` and `other`, with the labels they have seen from `one`; from the other end they have others."""
        ends = np.concatenate([first_ends, second_ends])
        others = np.concatenate([second_ends, first_ends])
        labels = np.concatenate([2 * label, 2 * label + 1])
        order = np.argsort(ends, kind="stable")
        first = np.zeros(things + 1, np.int64)
        np.cumsum(np.bincount(ends, minlength=things), out=first[1:])  # count
        return cls(first, others[order], labels[order])


def refine(colours: Ints, ties: Ties, most: int | None = None) -> Ints | None:
    """The class of each thing: 0, 1, ... in the order of their first things.

    None if that takes more looks at a tie than `most`: things that differ a little from neighbour to neighbour.
    Two ties of one kind to equal things:

    >>> ties = Ties.of(4, np.array([0, 0, 1]), np.array([2, 3, 3]), np.array([0, 0, 0]))
    >>> refine(np.array([0, 0, 1, 1]), ties).tolist()
    [0, 1, 2, 3]
    >>> ring = Ties.of(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), np.zeros(4, int))
    >>> refine(np.zeros(4, int), ring).tolist()
    [0, 0, 0, 0]
    """
    classes = numbered(colours)
    count = int(classes.max(initial=-1)) + 1
    labels = mixed(mixed(ties.label.astype(np.uint64)))  # twice, or class 1 by label 0 would look as class 0 by label 1
    looks = 0
    while count < len(colours):
        looks += len(ties.other)
        if most is not None and looks > most:
            return None
        around = mixed(mixed(classes.astype(np.uint64))[ties.other] ^ labels)
        finer = numbered(_sums(around, ties.first))
        finer = numbered(finer * np.int64(count) + classes)  # what was apart stays apart
        if (distinct := int(finer.max(initial=-1)) + 1) == count:
            return classes
        classes, count = finer, distinct
    return classes


def is_equitable(colours: Ints, ties: Ties, classes: Ints) -> bool:
    """Whether all things of a class have one first colour, and by every label equally many neighbours of every class."""
    leader = np.unique(classes, return_index=True)[1][classes]
    if not (colours == colours[leader]).all():
        return False
    count = np.diff(ties.first)
    if not (count == count[leader]).all():
        return False
    where = np.repeat(np.arange(len(classes)), count)
    as_leader = np.arange(len(where)) - ties.first[where] + ties.first[leader[where]]
    around = classes[ties.other]
    unlike = np.unique(where[(ties.label != ties.label[as_leader]) | (around != around[as_leader])])
    if not len(unlike):  # in the same order, too
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
    leader_rows = as_leader[unlike_rows]  # the others are as their leader is in the order of both
    return bool((label[unlike_rows] == label[leader_rows]).all() and (beside[unlike_rows] == beside[leader_rows]).all())


def numbered(values: NDArray[Any]) -> Ints:
    """Numbers for equal values, in the order in which they first come."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    numbers: Ints = rank[inverse.ravel()]
    return numbers


def _sums(values: Words, first: Ints) -> Words:
    """Sum of each thing's values; sums that pass 64 bits wrap, the same in any order."""
    total = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=total[1:])
    sums: Words = total[first[1:]] - total[first[:-1]]
    return sums


def mixed(words: Words) -> Words:
    """The finishing steps of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    with np.errstate(over="ignore"):
        words = words + _FIRST
        words = (words ^ (words >> np.uint64(30))) * _SECOND
        words = (words ^ (words >> np.uint64(27))) * _THIRD
        return words ^ (words >> np.uint64(31))
