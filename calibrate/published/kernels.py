"""Kernel times of serving frameworks: tables of ai-dynamo/aiconfigurator by GPU, framework and number formats.

A group is one kernel on one GPU: `validation/serving/aic_*.csv` has the time of each configuration in a CUDA graph. Half of the
shapes of each group, chosen by checksum, are used for fitting, and the other half is evaluated. Configurations with several
rows count once, with their median.
"""

from __future__ import annotations

import functools
import math
import statistics
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hwsim.devices import Gpu
from hwsim.devices.gpu_attention import KernelRates
from hwsim.origins import Case
from hwsim.spec import SpecError
from published.parts import declared, part, table
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, scored
from published.search import simplex

Array = NDArray[np.float64]
SOURCE: Final = "ai-dynamo/aiconfigurator@095f58a51c4c"
PARTS: Final[Mapping[str, str]] = declared("kernels")["parts"]
GENERATION: Final[Mapping[str, str]] = declared("kernels")["generation"]
KIND: Final[Mapping[str, str]] = declared("kernels")["kind"]
LIBRARY: Final[Mapping[str, str]] = {"vllm": "flash", "trtllm": "tensorrt", "sglang": "sglang"}
CAP: Final = 0.7  # larger errors are clipped in a fit
CASES: Final[tuple[Case, ...]] = ("device", "generation")
FEW: Final = 40  # rows per GPU in a fit of several GPUs
OWNED: Final = 60  # rows of the held-out GPU used for its own constants
Kernel = TypeVar("Kernel")
Cut = TypeVar("Cut")


def gpu_of(system: str) -> Gpu | None:
    """Return the part of the library for a system of the tables; None if the library has none."""
    try:
        return part(Gpu, PARTS[system])
    except SpecError:
        return None


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of one kernel on one GPU.

    Args:
        key: name of the kernel; system: name in the tables.
        columns: an array per column of the rows.
        seconds: measured time; held: whether a row is evaluated; said: its name.
    """

    system: str
    key: str
    columns: Mapping[str, Array]
    seconds: Array
    held: NDArray[np.bool_]
    said: tuple[str, ...]

    def of(self, rows: NDArray[Any]) -> Group:
        """Return some rows of the group."""
        at = np.flatnonzero(rows) if rows.dtype == bool else rows
        columns = {name: column[at] for name, column in self.columns.items()}
        return Group(self.system, self.key, columns, self.seconds[at], self.held[at], tuple(self.said[row] for row in at))

    def half(self, held: bool, most: int | None = None) -> Group:
        """Return the evaluated or the fitted half; `most`: maximum number of rows, sampled evenly."""
        at = np.flatnonzero(self.held == held)
        if most is not None and len(at) > most:
            at = np.sort(np.random.default_rng(0).permutation(at)[:most])
        return self.of(at)

    def __len__(self) -> int:
        return len(self.seconds)


def together(parts: Sequence[Group], rates: Callable[[Group], KernelRates]) -> tuple[Mapping[str, Array], KernelRates]:
    """Return the columns of several groups as one, with the rates of each row, for a single evaluation."""
    counts, each = [len(part) for part in parts], [rates(part) for part in parts]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    numbers: dict[str, Any] = {
        field.name: np.repeat([getattr(rate, field.name) for rate in each], counts) for field in fields(KernelRates)
    }
    return columns, KernelRates(**numbers)


def groups(
    path: Path,
    key: Callable[[Mapping[str, str]], str],
    columns: Callable[[Mapping[str, str]], Mapping[str, float]],
    shape: Sequence[str],
) -> list[Group]:
    """Return the groups of a table. key: kernel of a row, "" to skip it; shape: columns that determine its half."""
    found: dict[tuple[str, str], dict[tuple[Any, ...], tuple[Mapping[str, float], bool, list[float], str]]] = {}
    for said in table(path):
        name = key(said)
        if not name or said["system"] not in PARTS:
            continue
        numbers = columns(said)
        half = zlib.crc32(",".join(said[column] for column in shape).encode()) % 2 == 1
        text = f"{path.stem} {said['source'].partition('/')[0]} {said['system']} " + " ".join(
            f"{column} {value:g}" for column, value in numbers.items()
        )
        rows = found.setdefault((said["system"], name), {})
        rows.setdefault(tuple(numbers.values()), (numbers, half, [], text))[2].append(float(said["latency_ms"]) * 1e-3)
    return [_group(system, name, list(rows.values())) for (system, name), rows in sorted(found.items())]


def _group(system: str, key: str, rows: Sequence[tuple[Mapping[str, float], bool, list[float], str]]) -> Group:
    names = rows[0][0]
    return Group(
        system,
        key,
        {name: np.array([float(row[0][name]) for row in rows]) for name in names},
        np.array([statistics.median(row[2]) for row in rows]),
        np.array([row[1] for row in rows]),
        tuple(row[3] for row in rows),
    )


# ---- fits ----


@dataclass(frozen=True, slots=True)
class Constant:
    """A fitted constant: name, initial value and limits."""

    name: str
    typical: float
    least: float
    most: float


def fitted(
    predict: Callable[[Mapping[str, float]], Array],
    measured: Array,
    constants: Sequence[Constant],
    rounds: int = 3,
    each: int = 60,
) -> tuple[dict[str, float], float]:
    """Return the (constants, mean error) found by a search."""
    lowest = np.log([constant.least for constant in constants])
    highest = np.log([constant.most for constant in constants])
    names = [constant.name for constant in constants]
    logs = np.log(measured)

    def error(at: Sequence[float]) -> float:
        inside = np.clip(at, lowest, highest)
        off = np.abs(np.log(predict(dict(zip(names, np.exp(inside), strict=True)))) - logs)
        return float(np.minimum(off, CAP).mean() + 0.01 * np.sum((np.array(at) - inside) ** 2))

    at, value = [math.log(constant.typical) for constant in constants], math.inf
    for _ in range(rounds):
        at, value = simplex(error, np.clip(at, lowest, highest).tolist(), most=each * len(constants))
    return dict(zip(names, (float(number) for number in np.exp(np.clip(at, lowest, highest))), strict=True)), value


def best_of(
    cuts: Iterable[Cut],
    seconds: Callable[[Cut, Mapping[str, float]], Array],
    measured: Array,
    constants: Sequence[Constant],
    rounds: int = 3,
    each: int = 60,
) -> tuple[Cut, dict[str, float]]:
    """Return the best (split, constants)."""
    tried = [(cut, *fitted(functools.partial(seconds, cut), measured, constants, rounds, each)) for cut in cuts]
    cut, found, _ = min(tried, key=lambda one: one[2])
    return cut, found


def near(constants: Iterable[Constant], known: Mapping[str, float]) -> list[Constant]:
    """Return the same constants with known initial values."""
    return [replace(constant, typical=known.get(constant.name, constant.typical)) for constant in constants]


def left_out_of(
    found: Sequence[Group],
    case: Case,
    fit: Callable[[Sequence[Group], Kernel | None], Kernel],
    predict: Callable[[Group, Kernel], Array],
    other: Callable[[Group, Group, Case], bool],
    *,
    own: bool = False,
    fits: dict[tuple[str, str], Kernel] | None = None,
) -> list[tuple[Group, Array]]:
    """Return (rows of a kernel, predictions by a fit without their device or without their generation).

    Rows are skipped if no other GPU remains for the fit.

    Args:
        found: groups of any kernels.
        fit: returns the kernel fitted to rows; of a known kernel, with a few constants of the rows' own.
        other: whether a fit without the second group's device or generation contains the first group.
        own: also fit a few constants to `OWNED` rows of the held-out GPU.
        fits: cache of fits by (kernel, held-out unit).
    """
    said, fits = [], {} if fits is None else fits
    for key in dict.fromkeys(group.key for group in found):
        alike = [group for group in found if group.key == key]
        for group in alike:
            unit = key, GENERATION[group.system] if case == "generation" else group.system
            others = [peer for peer in alike if other(peer, group, case)]
            if not others:
                continue
            if unit not in fits:
                fits[unit] = fit([peer.half(False, FEW) for peer in others], None)
            kernel = fit([group.half(False, OWNED)], fits[unit]) if own else fits[unit]
            said.append((group.half(True), predict(group.half(True), kernel)))
    return said


def other_than(other: Group, group: Group, case: Case) -> bool:
    """Return whether a fit without a group's device contains another of its generation, or without its generation another one."""
    ours, theirs = GENERATION[group.system], GENERATION[other.system]
    if case == "device":
        return theirs == ours and other.system != group.system
    return theirs != ours


def fed_alike(other: Group, group: Group, case: Case) -> bool:
    """Return the same for GPUs whose matrix units get operands in the same way."""
    return other_than(other, group, case) and KIND[GENERATION[other.system]] == KIND[GENERATION[group.system]]


def held(
    found: Iterable[Group], shipped: Callable[[Group], Kernel | None], predict: Callable[[Group, Kernel], Array]
) -> list[tuple[Group, Array]]:
    """Return the evaluated half with its predictions."""
    pairs = [(group.half(True), shipped(group)) for group in found]
    return [(group, predict(group, kernel)) for group, kernel in pairs if kernel is not None and len(group)]


def score(
    name: str,
    found: Iterable[tuple[Group, Array]],
    bound: float,
    half: Half = "interpolated",
    reached: float | None = None,
) -> Score:
    """Return the score of some groups."""
    missed = [miss for group, said in found for miss in misses(group, said)]
    return scored(name, missed, bound, half, reached=reached)


def misses(group: Group, predicted: Array) -> list[Miss]:
    """Return each row of a group with its prediction."""
    name = f"{group.key}, {group.system}"
    rows = zip(group.said, predicted, group.seconds, strict=True)
    return [Miss(said, float(guess), float(measured), name) for said, guess, measured in rows]


def residuals_of(
    topic: str,
    known: Iterable[tuple[Group, Array]],
    left: Callable[[Case], Iterable[tuple[Group, Array]]],
    regime: Callable[[Group, int], str],
    most: int = 40,
) -> list[Residual]:
    """Return interpolated residuals, and those with device or generation held out, with the same works on every device."""
    said = []
    found: list[tuple[Case, tuple[Group, Array]]] = [("known", pair) for pair in known]
    found += [(case, pair) for case in CASES for pair in left(case)]
    for case, (group, predicted) in found:
        unit = GENERATION[group.system] if case == "generation" else group.system
        works = [
            f"{group.key} " + " ".join(f"{name} {column[index]:g}" for name, column in group.columns.items())
            for index in range(len(group))
        ]
        hashes = [zlib.crc32(work.encode()) for work in works]
        draw = sorted(range(len(group)), key=hashes.__getitem__)[:most]
        said += [
            of_miss(
                Miss(group.said[i], float(predicted[i]), float(group.seconds[i]), f"{SOURCE} {PARTS[group.system]} {group.key}"),
                topic,
                regime(group, i),
                case,
                unit=unit,
                work=works[i],
                device=PARTS[group.system],
            )
            for i in sorted(draw)
        ]
    return said
