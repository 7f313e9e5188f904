"""GEMM kernels of serving frameworks on nine GPUs: 16 and 8 bits, block scales, 4 bits, weight-only formats.

The benchmark replays graphs of a few GEMMs, so a time includes the gap between kernels and the casts of the kernels.
Activations are always in the last cache. Weights of up to a fifth of that cache are as well, but are read from memory here, as
in a real model. vLLM's kernels with block scales are excluded, because they were launched one by one by a host that takes
longer than they do.

A part's `matmul:` is fitted to half of the shapes. A held-out GPU takes constants fitted to other GPUs together
(`products_pooled`), with its own peak, clock, multiprocessors and bandwidth: those of its generation if it has twins there, or
those of all other generations, as in the class files. "Three constants" are its efficiency, its fraction of memory bandwidth
and its launch time, fitted to 60 shapes.
"""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from hwsim.demand import rates_of
from hwsim.devices import Gpu, MatmulShape, Work
from hwsim.origins import Case
from hwsim.units import BYTES
from published.kernels import GENERATION, PARTS
from published.parts import part, table
from published.products_pooled import OWN, Constants, Tiles, Timed, tiling
from published.products_pooled import fit as fitted
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, scored

NAME: Final = "it"
SOURCE: Final = "ai-dynamo/aiconfigurator"
# System in the data: part and generation.
SYSTEMS: Final[Mapping[str, tuple[str, str]]] = {name: (PARTS[name], GENERATION[name]) for name in PARTS}


@dataclass(frozen=True, slots=True)
class Kind:
    """GEMMs of one kind of kernels.

    Args:
        key: key of `matmul`, without the software.
        dtype: compute format.
        weight: format of the weights.
        tiles: tiles of its fit.
        topic: topic of the residuals.
        bounds: bounds of held-out shapes, by framework.
    """

    key: str
    dtype: str
    weight: str
    casts: bool
    topic: str
    tiles: Mapping[str, Tiles]
    bounds: Mapping[str, float]


_WIDE: Final = Tiles(16, 128, 32768, 64)
_WHOLE: Final = Tiles(16, 128, 32768, 1)
_PAIRED: Final = Tiles(128, 128, 65536, 1)  # two values per byte, one scale per 16 values: no narrow tiles, no split-k
KINDS: Final[Mapping[str, Kind]] = {
    "bfloat16": Kind("bf16", "bf16", "bf16", False, "product", {"trtllm": _WIDE, "vllm": _WIDE}, {"": 0.06}),
    "fp8": Kind("fp8", "fp8", "fp8", True, "product8", {"trtllm": _WIDE, "vllm": Tiles(16, 128, 65536, 1)},
                {"trtllm": 0.04, "vllm": 0.08}),
    "fp8_block": Kind("fp8-block", "fp8", "fp8", True, "product8", {"trtllm": _WHOLE}, {"trtllm": 0.06}),
    "nvfp4": Kind("fp4", "fp4", "fp4", True, "product4", {"trtllm": _PAIRED, "vllm": replace(_PAIRED, smallest=64)}, {"": 0.10}),
    "sq": Kind("int8", "int8", "int8", True, "product8", {"trtllm": _WHOLE}, {"": 0.10}),
    "int8_wo": Kind("int8-weights", "bf16", "int8", False, "weightonly", {"trtllm": Tiles(16, 64, 32768, 1)}, {"": 0.10}),
    "int4_wo": Kind("int4-weights", "bf16", "int4", False, "weightonly", {"trtllm": _WIDE}, {"": 0.10}),
}  # fmt: skip
LEFT_OUT: Final = (("bfloat16", ""), ("fp8", "trtllm"), ("fp8", "vllm"))
FEW: Final = 60  # rows per GPU in a fit of all GPUs
POOLED: Final = 200
SEED: Final = 1
THIN: Final = 2  # every second row is evaluated with constants of other GPUs


@dataclass(frozen=True, slots=True)
class Row:
    """One GEMM of one framework on one GPU."""

    system: str
    framework: str
    kind: str
    m: int
    n: int
    k: int
    seconds: float

    @property
    def part(self) -> str:
        return SYSTEMS[self.system][0]

    @property
    def generation(self) -> str:
        return SYSTEMS[self.system][1]

    @property
    def group(self) -> str:
        return f"{SOURCE}, {self.framework}, {self.part}, {self.kind}"

    @property
    def fitted(self) -> bool:
        """Whether its shape is in the half used for fitting."""
        return zlib.crc32(f"{self.m},{self.n},{self.k}".encode()) % 2 == 0

    @property
    def shared(self) -> bool:
        """Whether its shape is in the evaluated subset whose residuals are kept: the same shapes on every GPU."""
        return zlib.crc32(f"{self.m},{self.n},{self.k}".encode()) // 2 % THIN == 0

    def name(self) -> str:
        return f"{self.part} {self.framework} {self.kind}: {self.m} x {self.n} x {self.k}"

    @property
    def product(self) -> MatmulShape:
        kind = KINDS[self.kind]
        width, weight = BYTES[kind.dtype], BYTES[kind.weight]
        own = kind.key if kind.key != kind.dtype else ""
        return MatmulShape(
            self.m,
            self.n,
            self.k,
            1,
            transposed=True,
            weight=weight if weight != width else 0.0,
            cast=2.0 if kind.casts else 0.0,
            variant=own,
            software=self.framework,
        )

    @property
    def work(self) -> Work:
        """Return the GEMM as a request of the op `matmul` in a graph."""
        kind = KINDS[self.kind]
        reads = self.m * self.k * BYTES[kind.dtype] + self.k * self.n * BYTES[kind.weight]
        flop = 2.0 * self.m * self.n * self.k
        return Work(
            flop=flop,
            reads=reads,
            writes=2.0 * self.m * self.n,
            dtype=kind.dtype,
            mix="matmul",
            product=self.product,
            start="graph",
        )

    def timed(self, weight: float = 1.0) -> Timed:
        """Return the row for a fit of many GPUs."""
        kind = KINDS[self.kind]
        widths = (BYTES[kind.dtype], BYTES[kind.weight])
        cast = 2.0 if kind.casts else 0.0
        return Timed(gpu_of(self.system), kind.dtype, self.product, widths, 2.0, cast, self.seconds, weight)

    @property
    def regime(self) -> str:
        return "tiny" if self.seconds < 20e-6 else "skinny" if min(self.m, self.n) <= 128 else "big"


def gpu_of(system: str) -> Gpu:
    """Return the part."""
    return part(Gpu, SYSTEMS[system][0])


def rows(data: Path) -> list[Row]:
    """Return all GEMMs launched by a graph."""
    found = []
    for said in table(data / "validation" / "serving" / "aic_gemm.csv"):
        kind, framework = said["gemm_dtype"], said["source"].split("/")[0]
        if framework in KINDS[kind].tiles:
            shape = int(said["m"]), int(said["n"]), int(said["k"])
            found.append(Row(said["system"], framework, kind, *shape, float(said["latency_ms"]) * 1e-3))
    return found


def seconds_of(gpu: Gpu, row: Row) -> float:
    """Return the predicted time, in seconds."""
    return gpu.compute(NAME, row.work).demand.alone(rates_of(gpu.capacities(NAME)))


# ---- scores ----


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out shapes by kind, and of held-out GPU generations."""
    found = rows(data)
    held = [row for row in found if not row.fitted]
    scored = []
    for name, kind in KINDS.items():
        for framework, bound in kind.bounds.items():
            mine = [row for row in held if row.kind == name and framework in ("", row.framework)]
            title = f"{kind.key}{f', {framework}' if framework else ''}"
            scored.append(_score(f"GEMMs, {title}", mine, _known, bound, "interpolated"))
    for name, framework in LEFT_OUT:
        some = [row for row in found if row.kind == name and framework in ("", row.framework)]
        title = f"GEMMs, {KINDS[name].key}{f', {framework}' if framework else ''}, held-out GPU generation"
        for own, bound in ((False, 0.12), (True, 0.08 if name == "bfloat16" else 0.06)):
            what = title + (", three constants from 60 of its rows" if own else "")
            test = [row for group in groups(some).values() for row in [row for row in group if not row.fitted][::THIN]]
            scored.append(_score(what, test, _of_others(some, own), bound, "cross-validated"))
    return tuple(scored)


def groups(found: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of each framework and GPU."""
    made: dict[tuple[str, str], list[Row]] = {}
    for row in found:
        made.setdefault((row.framework, row.system), []).append(row)
    return made


def _known(row: Row) -> float:
    return seconds_of(part(Gpu, row.part), row)


def _of_others(every: Sequence[Row], own: bool) -> Callable[[Row], float]:
    """Return the prediction of a row with constants of other generations."""
    gpus = {(framework, system): left_out(every, framework, system, "generation", own) for framework, system in groups(every)}
    return lambda row: seconds_of(gpus[row.framework, row.system], row)


# Score reached so far, where it exceeds the bound.
REACHED: Final[Mapping[str, float]] = {
    "GEMMs, bf16": 0.0651,
    "GEMMs, fp8, trtllm": 0.0467,
    "GEMMs, fp8, vllm, held-out GPU generation": 0.138,
    "GEMMs, fp8, vllm, held-out GPU generation, three constants from 60 of its rows": 0.101,
}


def _score(name: str, mine: Sequence[Row], said: Callable[[Row], float], bound: float, half: Half) -> Score:
    misses = [Miss(row.name(), said(row), row.seconds, row.group) for row in mine]
    return scored(name, misses, bound, half, why=_reason, reached=REACHED.get(name))


def _reason(miss: Miss) -> str:
    m, n, _ = (int(side) for side in miss.row.split(":")[1].split("x"))
    if miss.predicted > miss.measured:
        return "the weights stayed in the cache" if min(m, n) <= 512 else "the library has a special kernel for this shape"
    return "skinny GEMM; the library has no efficient kernel" if min(m, n) <= 128 else "the library chose a slow kernel"


# ---- constants of other GPUs ----


def left_out(every: Sequence[Row], framework: str, system: str, what: Literal["device", "generation"], own: bool = False) -> Gpu:
    """Return the GPU with constants fitted to others of its generation, as in its class, or to other generations."""
    mine = [row for row in every if row.framework == framework and row.fitted]
    own_ones = what == "device"
    others = [row for row in mine if row.system != system and (row.generation == SYSTEMS[system][1]) == own_ones]
    kind = KINDS[every[0].kind]
    tiles = kind.tiles[framework]
    constants: Constants = _pooled(tuple(others), tiles)
    gpu = gpu_of(system)
    if own:
        some = random.Random(SEED).sample([row for row in mine if row.system == system], FEW)
        constants = fitted([row.timed() for row in some], tiles, known=constants, free=OWN)
    named = f"{kind.key}-{framework}" if f"{kind.key}-{framework}" in gpu.matmul else kind.key
    return replace(gpu, matmul={named: tiling(constants, gpu, tiles, casts=kind.casts)})


def pooled(found: Iterable[Row], tiles: Tiles) -> dict[str, float]:
    """Return one set of constants for these GPUs, with equal weight per generation."""
    systems: dict[str, list[Row]] = {}
    for row in found:
        systems.setdefault(row.system, []).append(row)
    few = [row for system in systems.values() for row in random.Random(SEED).sample(system, min(len(system), POOLED))]
    sizes: dict[str, int] = {}
    for row in few:
        sizes[row.generation] = sizes.get(row.generation, 0) + 1
    share = len(few) / len(sizes)
    return fitted([row.timed((share / sizes[row.generation]) ** 0.5) for row in few], tiles)


_pooled: Final = functools.lru_cache(maxsize=32)(pooled)  # four GPUs of a generation have the same other generations


# ---- residuals ----


def residuals(data: Path) -> list[Residual]:
    """Return residuals of held-out shapes, of held-out GPUs, and of held-out generations."""
    found = rows(data)
    said: list[Residual] = []
    for name, kind in KINDS.items():
        for framework in kind.tiles:
            some = [row for row in found if (row.kind, row.framework) == (name, framework)]
            for (_, system), mine in groups(some).items():
                said += _residuals(some, [row for row in mine if not row.fitted and row.shared], framework, system)
    return said


def _residuals(some: Sequence[Row], test: Sequence[Row], framework: str, system: str) -> Iterable[Residual]:
    own, generation = SYSTEMS[system]
    others = {row.system for row in some} - {system}
    yield from (_residual(row, _known(row), "known", own) for row in test)
    if any(SYSTEMS[other][1] == generation for other in others):
        gpu = left_out(some, framework, system, "device")
        yield from (_residual(row, seconds_of(gpu, row), "device", own) for row in test)
    if any(SYSTEMS[peer][1] != generation for peer in others):
        gpu = left_out(some, framework, system, "generation")
        yield from (_residual(row, seconds_of(gpu, row), "generation", generation) for row in test)


def _residual(row: Row, predicted: float, case: Case, unit: str) -> Residual:
    kind = KINDS[row.kind]
    miss = Miss(row.name(), predicted, row.seconds, row.group)
    work = f"{row.framework} {kind.key} {row.m} x {row.n} x {row.k}"
    return of_miss(miss, kind.topic, row.regime, case, unit=f"{unit} {row.framework}", work=work, device=row.part)
