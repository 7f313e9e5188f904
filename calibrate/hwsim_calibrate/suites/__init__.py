"""The suites: one module each, with `cases(scope)` and, where a machine may lack it, `missing()`: the reason.

`work.reads` and `work.writes` are the bytes that the program names, each operand once; what caches make of it is for the fit.
"""

# The words of `op` and `params` of a row:
#
#   op              the function of numpy: add, multiply, exp, sum, matmul, take, sort, normal, copyto, ...; else a word
#   dtype           fp32, fp64, fp16, bf16, int8, int32, int64, bool
#   n               elements of a flat array: of each operand, of the input of a reduction, of the table of a `take`
#   shape           [rows, columns] of the array; of `matmul` [m, k, n]; of `window` [channels, height, width, side]
#   into            new (a fresh array), out (one that is there), self (in place, the first operand)
#   other           second operand: array, scalar, row (n), column (m x 1), same (the first once more), mask (of bool)
#   axis            of a reduction: none, 0, 1
#   transposed      of `matmul`: none, a, b
#   index           how many indices of `take`, or rows of `takerows`
#   layout          strided: rows with a gap behind each; columns: across the rows; flat if it is not said
#   side            of `mixed`, the array of its calls
#   source          of a copy that changes the type: the type it is read in
#   pages           of `mapped`: small
#   pinned          of the suite gpu: memory of the host that cannot be swapped
#   bytes           of a transfer, or of fresh memory; of the working set together for `memory`
#   pattern         sequential, random, dependent

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol, cast

from hwsim_calibrate.case import Case

# Suite: its subject. A new suite is a new module here and a line in this table.
SUITES: Final[dict[str, str]] = {
    "kernels": "kernels of numpy, one thread: element by element, reductions, products, sorting, random numbers",
    "allocation": "fresh memory: empty arrays, pages met for the first time",
    "memory": "caches and memory: copies over growing arrays, random reads, a chain of pointers",
    "gpu": "a GPU through cupy: launches, copies, memory, matrix products",
}
MiB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Scope:
    """The extent of a suite.

    Args:
        memory: bytes of the largest working set.
        gpu: number of the GPU.
    """

    memory: int = 256 * MiB
    gpu: int = 0


class Suite(Protocol):
    """A module of this package."""

    def cases(self, scope: Scope) -> Iterator[Case]: ...


def suite(name: str) -> Suite:
    """The module of a suite."""
    return cast("Suite", import_module(f"{__name__}.{name}"))


def missing(name: str) -> str:
    """Why this machine cannot run a suite; "" if it can."""
    return str(getattr(suite(name), "missing", str)())


def usable_cpus() -> int:
    """CPUs that this process may run on.

    >>> usable_cpus() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
