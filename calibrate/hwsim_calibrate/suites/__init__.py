"""The suites. Each is a module with `cases(scope)` and optionally `missing()`, the reason why the machine cannot run it.

`work.reads` and `work.writes` count the bytes of each operand once. The fit models the effect of caches.
"""

# The values of `op` and `params` of a row:
#
#   op              the numpy function (add, exp, sum, matmul, take, sort, copyto, ...) or the name of an operation
#   dtype           fp32, fp64, fp16, bf16, int8, int32, int64, bool
#   n               elements of a flat array: each operand, the input of a reduction, or the table of a `take`
#   shape           [rows, columns] of the array; `matmul`: [m, k, n]; `window`: [channels, height, width, side]
#   into            the result: new (a fresh array), out (an existing array), self (in place, the first operand)
#   other           the second operand: array, scalar, row (n), column (m x 1), same (as the first), mask (bool)
#   axis            reductions: none, 0, 1
#   transposed      `matmul`: none, a, b
#   index           number of indices of `take`, or of rows of `takerows`
#   layout          flat (default), strided (a gap after each row), columns (transposed)
#   side            `mixed`: rows and columns of its arrays
#   source          copies between number formats: the format of the source
#   pages           `mapped`: small
#   pinned          suite gpu: whether host memory is pinned
#   bytes           a transfer, fresh memory, or the working set (`memory`)
#   pattern         sequential, random, dependent

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol, cast

from hwsim_calibrate.case import Case

# Suite -> its subject. To add a suite, add a module here and a line in this table.
SUITES: Final[dict[str, str]] = {
    "kernels": "single-thread numpy calls: elementwise, reductions, matmuls, sorting, random numbers",
    "allocation": "fresh memory: empty arrays and page faults",
    "memory": "caches and memory: copies of growing arrays, random reads, pointer chases",
    "gpu": "a GPU through cupy: kernel launches, copies, memory, matmuls",
}
MiB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Scope:
    """The extent of a suite.

    Args:
        memory: largest working set (bytes).
        gpu: index of the GPU.
    """

    memory: int = 256 * MiB
    gpu: int = 0


class Suite(Protocol):
    """The interface of a suite's module."""

    def cases(self, scope: Scope) -> Iterator[Case]: ...


def suite(name: str) -> Suite:
    """Return the module of a suite."""
    return cast("Suite", import_module(f"{__name__}.{name}"))


def missing(name: str) -> str:
    """Return why this machine cannot run a suite; "" if it can."""
    return str(getattr(suite(name), "missing", str)())


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use.

    >>> usable_cpus() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
