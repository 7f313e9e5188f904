"""Small kernels, dominated by launch latency, and softmax, layer norm and GELU in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim.devices import Gpu, Work
from hwsim.devices.gpu_memory import Launch, SustainedBandwidth, ThreadStream
from hwsim.devices.work import Start
from published import gpu_caches
from published.gpu_benches import GENERATIONS, REAL, Point, middle, small_kernels
from published.parts import part, table
from published.residual import Residual, left_out, of_miss
from published.score import Miss, Score, scored

STARTS: Final[dict[str, Start]] = {"stream": "stream", "graph": "graph"}
HALF: Final = 2.0  # B of a value in fp16
A100: Final = "a100-sxm-80gb"
SMALL: Final = 2e6  # B below which launch latency dominates

# Overhead of PyTorch and the benchmark beyond the GPU's `launch.host`, in s; fitted to half of the sizes.
SOFTWARE: Final = {"softmax": 3.4e-6, "layernorm": 39.9e-6, "gelu": 35.9e-6}


@dataclass(frozen=True, slots=True)
class _Op:
    """One measurement: an array of rows x columns, and its time in seconds."""

    row: str
    kind: str
    rows: float
    columns: float
    seconds: float

    @property
    def elements(self) -> float:
        return self.rows * self.columns


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of copy kernels by launch method, and of three PyTorch ops."""
    kernels = [point for point in small_kernels(data) if not point.fitted]
    tiny = [point.miss(_kernel(point, part(Gpu, point.part))) for point in kernels if point.size < SMALL]
    large = [point.miss(_kernel(point, part(Gpu, point.part))) for point in kernels if point.size >= SMALL]
    ops = [_miss(op) for op in _ops(data)[1::2]]
    return (
        scored(
            "copy kernels below 2 MB, in streams and graphs",
            tiny,
            0.06,
            "interpolated",
            metric="mean relative error",
            why=lambda miss: "AMD: launch latency grows with the number of blocks" * ("mi210" in miss.row),
        ),
        scored("copy kernels from 2 MB, in streams and graphs", large, 0.08, "interpolated", metric="mean relative error"),
        scored("softmax, layer norm and GELU in PyTorch, A100", ops, 0.10, "interpolated", metric="mean relative error"),
    )


@functools.cache
def as_others(name: str, others: tuple[str, ...]) -> Gpu | None:
    """Return the part with the other GPUs' launch times and L2: bytes per clock and multiprocessor, and efficiency of copies."""
    gpu = gpu_caches.as_others(name, others)
    if gpu is None or gpu.l2 is None:
        return None
    starts = [known.launch for other in others if isinstance((known := part(Gpu, other)).launch, Launch)]
    launch = Launch(stream=middle(cost.stream for cost in starts) or 0.0, graph=middle(start.graph or 0.0 for start in starts))
    copied = [l2.sustained.copy for other in others if (l2 := part(Gpu, other).l2) is not None and l2.sustained.copy < 1]
    return replace(gpu, launch=launch, l2=replace(gpu.l2, sustained=SustainedBandwidth(copy=middle(copied) or 1.0)))


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and kernels with a GPU (from its generation) or a generation (from its vendor) held out."""
    found = []
    for point in small_kernels(data):
        topic, regime = ("launch", point.curve) if point.size < SMALL else ("elementwise", "big")
        work = f"a copy of {point.size:.0f} B in a {point.curve}"
        if not point.fitted:
            miss = point.miss(_kernel(point, part(Gpu, point.part)))
            found.append(of_miss(miss, topic, regime, "known", unit=point.part, work=work, device=point.part))
        for case, unit, others in left_out(point.part, GENERATIONS):
            gpu = as_others(point.part, others)
            if gpu is not None and (point.curve != "graph" or (isinstance(gpu.launch, Launch) and gpu.launch.graph)):
                found.append(
                    of_miss(point.miss(_kernel(point, gpu)), topic, regime, case, unit=unit, work=work, device=point.part)
                )
    for op in _ops(data)[1::2]:
        regime = "tiny" if op.elements < 1e6 else "big"
        found.append(of_miss(_miss(op), "elementwise", regime, "known", unit=A100, work=op.row, device=A100))
    return found


def _kernel(point: Point, gpu: Gpu) -> float:
    """Return the time of a kernel that repeatedly copies half of its bytes, in seconds."""
    half = point.size / 2
    asked = ThreadStream(reads=half, writes=half, each=REAL, working_set=point.size, start=STARTS[point.curve])
    return gpu.stream("it", asked).demand.alone({capacity.name: capacity.rate for capacity in gpu.capacities("it")})


def _ops(data: Path) -> list[_Op]:
    """Return the published rates, in 10^9 elements per second, as seconds."""
    found = []
    for kind in SOFTWARE:
        for row in table(data / "oracles" / f"llmcompass_measured_{kind}_A100.csv"):
            rows, columns = (float(row["M"]), float(row["N"])) if "M" in row else (1.0, float(row["elems"]))
            label = f"{kind} {rows:.0f} x {columns:.0f}"
            found.append(_Op(label, kind, rows, columns, rows * columns / float(row["G_units_as_in_source"]) / 1e9))
    return sorted(found, key=lambda op: (op.kind, op.elements, op.rows))


# Passes of each op over its array. PyTorch's softmax keeps rows of up to 1024 values in registers and reads longer ones
# twice; its layer norm does so beyond 8192 values.
READS: Final[dict[str, Callable[[float], int]]] = {
    "softmax": lambda columns: 1 if columns <= 1024 else 2,
    "layernorm": lambda columns: 1 if columns <= 8192 else 2,
    "gelu": lambda _: 1,
}


def _seconds(op: _Op) -> float:
    gpu = part(Gpu, A100)
    array = op.elements * HALF
    work = Work(reads=READS[op.kind](op.columns) * array, writes=array, dtype="fp16", working_set=2 * array, start="host")
    cost = gpu.compute("it", work)
    return SOFTWARE[op.kind] + cost.demand.alone({capacity.name: capacity.rate for capacity in gpu.capacities("it")})


def _miss(op: _Op) -> Miss:
    return Miss(op.row, _seconds(op), op.seconds, op.kind)
