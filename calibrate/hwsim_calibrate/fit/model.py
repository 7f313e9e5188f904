"""The formula of `hwsim.devices.kernels`, vectorized over calls and with derivatives for the solver.

All parameters are positive, and x is their logarithm. A `Name` is the path of a parameter in the table: ("functions", "add",
"each", "fp64"). `MeasuredFunctions.time` has the same formula for one call; a test compares both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.devices.work import LibraryCall
from hwsim_calibrate.calls import SORTED
from hwsim_calibrate.fit.least_squares import Floats

Name = tuple[str, ...]
ROLES: Final = ("read", "write", "update")
PAGES_FROM: Final = 2.0**25

# Start value of each parameter, and its spread as a factor e^spread.
_CALL: Final = (300e-9, 3.0)
_EACH: Final = (0.1e-9, 3.0)
_ROW: Final = (10e-9, 2.0)
_PER_BYTE: Final[Mapping[str, Mapping[str, float]]] = {
    "L2": {"read": 5e-12, "write": 10e-12, "update": 5e-12},
    "L3": {"read": 20e-12, "write": 30e-12, "update": 20e-12},
    "memory": {"read": 50e-12, "write": 80e-12, "update": 50e-12},
}
_LOOKUP: Final[Mapping[str, float]] = {"L2": 1e-9, "L3": 3e-9, "memory": 15e-9}
_PRODUCT: Final = {"left": 0.1e-9, "right": 0.1e-9, "result": 0.1e-9, "edge": 1e-9, "depth": 0.1e-9}
SHARPNESS: Final = (3.0, 1.0)
SHARPEST: Final = 10.0
OVERLAP: Final = (0.5, 0.5)
NEAREST: Final = 0.02


@dataclass(frozen=True, slots=True)
class Capacities:
    """Cache capacities.

    Args:
        sizes: level -> working set from which it is used (bytes).
        spread: uncertainty of the sizes as a factor e^spread.
    """

    sizes: Mapping[str, float]
    spread: float = 0.4


def entry_of(call: LibraryCall) -> str:
    """Return the entry of a call in the table, which is specific to its form."""
    return f"{call.function} {call.form}" if call.form else call.function


class Model:
    """The parameters of some calls, and the times of the calls as a function of the parameters."""

    def __init__(self, calls: Sequence[LibraryCall], capacities: Capacities) -> None:
        self.calls = tuple(calls)
        self.levels = tuple(capacities.sizes)
        self.names: dict[Name, int] = {}
        self._start: list[float] = []
        self._spread: list[float] = []
        self._name(calls, capacities)
        self.start, self.spread = np.array(self._start), np.array(self._spread)
        self._fixed = self._columns()
        self._apart = np.array([call.product is not None for call in calls])
        self._computing = [index for name, index in self.names.items() if name[0] == "functions" and name[2] in ("each", "row")]
        self._far = [self.names["levels", self.levels[-1], role] for role in ROLES]
        entries = [(row, operand) for row, call in enumerate(calls) for operand in call.operands]
        self._row: NDArray[np.int64] = np.array([row for row, _ in entries], np.int64)
        self._bytes = np.array([operand.bytes for _, operand in entries], np.float64)
        self._since = np.array([operand.since or calls[row].moved + calls[row].span for row, operand in entries], np.float64)
        self._role = np.array([ROLES.index(operand.role) for _, operand in entries], np.int64)
        self._lookups = np.array([call.lookups for call in calls], np.float64)
        self._span = np.array([call.span for call in calls], np.float64)

    def _put(self, name: Name, value: float, spread: float) -> None:
        if name not in self.names:
            self.names[name] = len(self._start)
            self._start.append(math.log(value))
            self._spread.append(spread)

    def _name(self, calls: Sequence[LibraryCall], capacities: Capacities) -> None:
        for call in calls:
            entry = entry_of(call)
            if call.product is not None:
                path = ("products", call.dtype)
                self._put((*path, "call"), *_CALL)
                self._put((*path, "flop"), 1e-11 if call.dtype == "fp32" else 2e-11, 3.0)
                for key, value in _PRODUCT.items():
                    self._put((*path, key), value, 2.0)
                continue
            self._put(("functions", entry, "call"), *_CALL)
            if call.count > 0:
                self._put(("functions", entry, "each", call.dtype), *_EACH)
            if call.rows > 1:
                self._put(("functions", entry, "row"), *_ROW)
        for into in ("new", "out", "self"):
            self._put(("into", into), 30e-9, 1.0)
        self._put(("pages",), 4e-11, 1.0)
        self._put(("lookup",), 0.5e-9, 1.0)
        self._put(("overlap",), *OVERLAP)
        for level, size in capacities.sizes.items():
            nearest = level == self.levels[0]  # the call overhead hides it, so the reported size is used
            self._put(("levels", level, "beyond"), size, NEAREST if nearest else capacities.spread)
            self._put(("levels", level, "lookup"), _LOOKUP[level], 1.5)
            self._put(("levels", level, "sharpness"), *SHARPNESS)
            for role in ROLES:
                self._put(("levels", level, role), _PER_BYTE[level][role], 1.5)

    def _columns(self) -> Floats:
        """Return the terms that do not depend on cache capacities."""
        columns = np.zeros((len(self.calls), len(self._start)))
        for row, call in enumerate(self.calls):
            for name, amount in self._terms(call):
                columns[row, self.names[name]] += amount
            columns[row, self.names["into", call.into]] = 1.0
            columns[row, self.names["pages",]] = new_pages(call)
            columns[row, self.names["lookup",]] = call.lookups
        return columns

    def _terms(self, call: LibraryCall) -> Iterable[tuple[Name, float]]:
        if call.product is not None:
            m, n, k, batch = call.product.m, call.product.n, call.product.k, call.product.batch
            path = ("products", call.dtype)
            yield (*path, "call"), 1.0
            amounts = {"flop": 2.0 * m * n * k, "left": m * k, "right": k * n, "result": m * n, "edge": m + n, "depth": k}
            yield from (((*path, key), float(amount) * batch) for key, amount in amounts.items())
            return
        path = ("functions", entry_of(call))
        yield (*path, "call"), 1.0
        if call.count > 0:
            yield (*path, "each", call.dtype), work_of(call)
        if call.rows > 1:
            yield (*path, "row"), call.rows

    def times(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the time of each call (s), and its derivatives by each x."""
        matrix, moving = self._fixed.copy(), self._moved(x)
        for name, column in moving.items():
            matrix[:, self.names[name]] += column
        values = np.exp(x)
        for name in self._inner():
            values[self.names[name]] = 0.0  # not terms of the sum
        values[self.names["overlap",]] = 0.0
        slopes = matrix * values
        times = slopes.sum(1)
        left = self._hide(x, times, slopes)
        last = {("levels", self.levels[-1], role) for role in ROLES}
        for name in self._inner():
            bent = x.copy()
            bent[self.names[name]] += 1e-3
            more, change = self._moved(bent), np.zeros(len(times))
            for term, column in moving.items():
                seen = left if term in last else 1.0
                change += (more[term] - column) * values[self.names[term]] * seen
            slopes[:, self.names[name]] = change / 1e-3
        return times + 1e-12, slopes

    def _hide(self, x: Floats, times: Floats, slopes: Floats) -> Floats:
        """Subtract the overlap of arithmetic and memory traffic; return the share of additional traffic that is exposed."""
        part, plain = min(math.exp(x[self.names["overlap",]]), 1.0), ~self._apart
        compute = slopes[:, self._computing].sum(1)
        far = slopes[:, self._far].sum(1)
        hidden = np.where(plain, np.minimum(compute, far), 0.0)
        times -= part * hidden
        shorter = plain & (compute <= far)
        slopes[np.ix_(shorter, self._computing)] *= 1.0 - part
        slopes[np.ix_(plain & ~shorter, self._far)] *= 1.0 - part
        slopes[:, self.names["overlap",]] = -part * hidden if part < 1.0 else 0.0
        return np.where(plain & ~shorter, 1.0 - part, 1.0)

    def _inner(self) -> list[Name]:
        return [("levels", level, key) for level in self.levels for key in ("beyond", "sharpness")]

    def _moved(self, x: Floats) -> dict[Name, Floats]:
        """Return the bytes and lookups that each level serves."""
        count = len(self.calls)
        sharpness = [min(math.exp(x[self.names["levels", level, "sharpness"]]), SHARPEST) for level in self.levels]
        capacities = [math.exp(x[self.names["levels", level, "beyond"]]) for level in self.levels]
        moved: dict[Name, Floats] = {}
        near, far = (_shares(self.levels, capacities, sharpness, distances) for distances in (self._since, self._span))
        for level in self.levels:
            for index, role in enumerate(ROLES):
                role_bytes = np.where(self._role == index, self._bytes * near[level], 0.0)
                moved["levels", level, role] = np.bincount(self._row, role_bytes, count).astype(np.float64)
            moved["levels", level, "lookup"] = self._lookups * far[level]
        return moved


def _shares(levels: Sequence[str], capacities: Sequence[float], sharpness: Sequence[float], since: Floats) -> dict[str, Floats]:
    """Return the share of each operand that each level serves."""
    with np.errstate(divide="ignore", over="ignore"):
        beyond = [
            np.where(since > 0, 1.0 / (1.0 + (size / np.maximum(since, 1e-9)) ** sharp), 0.0)
            for size, sharp in zip(capacities, sharpness, strict=True)
        ]
    after = [*beyond[1:], np.zeros(len(since))]
    return {level: np.clip(share - further, 0.0, None) for level, share, further in zip(levels, beyond, after, strict=True)}


def work_of(call: LibraryCall) -> float:
    """Return the elements of a call; for sorting, elements times log2 of the row length."""
    length = call.count / max(call.rows, 1.0)
    return call.count * (math.log2(max(length, 2.0)) if call.function in SORTED else 1.0)


def new_pages(call: LibraryCall) -> float:
    """Return the bytes on new pages: as recorded, else estimated from the size of the result."""
    return call.fresh if call.fresh is not None else call.written if call.made >= PAGES_FROM else 0.0
