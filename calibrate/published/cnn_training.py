"""CNN training: tf_cnn_benchmarks of 2017, Gavel's cluster, and NVIDIA/DeepLearningExamples.

The efficiency of convolution libraries (`hwsim.devices.convolution_speeds`) and the overhead of frameworks
(`hwsim.models.framework`) are fitted to alternate sizes (GPUs, then batch) of each network on a device. Rows with sums over
several workers are excluded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from hwsim.devices import Gpu, Work
from hwsim.devices.convolution_speeds import CONVOLUTION_SPEEDS, ConvolutionSpeeds, Units, units_of
from hwsim.models.architectures import FeedForwardNetwork
from hwsim.models.cluster import Cluster
from hwsim.models.framework import SOFTWARE, Software
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.plan import Dtype, ParallelPlan, derive_plan
from hwsim.models.step import TrainingStep, step
from hwsim.origins import Case
from published.cnn_rows import Row, exchange_of, network_of, rows
from published.parts import part
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, held_out, scored

Constants = tuple[Mapping[Units, ConvolutionSpeeds], Mapping[str, Software]]
Kernels = tuple[KernelTimes, Software]
ALL: Final[Constants] = (CONVOLUTION_SPEEDS, SOFTWARE)


def data_parallel_step(
    network: FeedForwardNetwork,
    batch: int,
    dtype: Dtype,
    times: KernelTimes,
    software: Software,
    gpus: int = 1,
    exchange: Callable[[float], float] | None = None,
) -> TrainingStep:
    """Return a training step of a network on equal GPUs, with any interconnect.

    Args:
        batch: examples on each GPU.
        exchange: seconds to sum a number of bytes of gradients over all GPUs.
    """
    plan = ParallelPlan(dp=gpus, global_batch=gpus * batch, microbatch=batch, dtype=dtype, optimizer="sgd")
    cluster = Cluster(times.gpu, gpus, gpus, {}, math.inf, math.inf)
    given = None if exchange is None else lambda item: exchange(item.size)
    return step(derive_plan(network, plan, gpus), cluster, software, times, given)


def predicted(row: Row, kernels: Kernels | None = None) -> float:
    """Return the predicted throughput of all GPUs, in images/s."""
    kernels = kernels or kernels_of(row.gpu, row.software)
    exchange = exchange_of(row.machine, row.gpu, row.gpus, row.exchange)
    dtype = cast("Dtype", row.dtype)
    return data_parallel_step(network_of(row.network), row.batch, dtype, *kernels, row.gpus, exchange).tokens_per_second


@cache
def _known(_gpu: str) -> dict[Work, float]:
    """Return the time of GPU kernels that do not depend on the fitted constants, in seconds."""
    return {}


def kernels_of(gpu: str, software: str, constants: Constants = ALL) -> Kernels:
    """Return the kernel model of a GPU under a framework."""
    chosen = constants[1][software]
    return KernelTimes(part(Gpu, gpu), chosen.kernels, known=_known(gpu), convolving=constants[0]), chosen


def held_rows(found: Sequence[Row]) -> list[Row]:
    """Return alternate sizes of each network on a device."""
    return held_out(found, lambda row: row.gpus * 10_000 + row.batch, lambda row: row.curve)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes, of all sizes, and of AlexNet."""
    found = rows(data)
    scored = [row for row in found if row.scored]
    held = held_rows(scored)
    return (
        _score("images/s, held-out sizes", held, 0.10, "interpolated"),
        _score("images/s, all sizes", scored, 0.10, "partly fitted"),
        _score("images/s, AlexNet", [row for row in found if not row.scored], 0.20, "not fitted", 0.276),
    )


# ---- residuals ----

MATRIX: Final[frozenset[Units]] = frozenset({"volta", "tf32", "ampere"})


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and residuals with a GPU generation or a framework held out (medians of the others).

    Kepler has no similar generation, so its rows have the case `outside`.
    """
    found = [row for row in rows(data) if row.scored]
    held = held_rows(found)
    used: dict[str, Units] = {row.id: units_of(part(Gpu, row.gpu), row.dtype) for row in found}
    kept = [_residual(row, "known", "", ALL) for row in held]
    for unit in sorted(set(used.values())):
        others = sorted(set(used.values()) - {unit, "kepler"})
        near = [other for other in others if unit in MATRIX and other in MATRIX] or others
        constants = (
            {
                **CONVOLUTION_SPEEDS,
                unit: _middle(CONVOLUTION_SPEEDS[unit], [CONVOLUTION_SPEEDS[peer] for peer in near], "part transformed direct"),
            },
            SOFTWARE,
        )
        case: Case = "outside" if unit == "kepler" else "generation"
        kept += [_residual(row, case, unit, constants) for row in found if used[row.id] == unit]
    names = sorted({row.software for row in found})
    for name in names:
        middle = _middle(
            SOFTWARE[name], [SOFTWARE[peer] for peer in names if peer != name], "moved dispatch casting step array number"
        )
        kept += [
            _residual(row, "source", name, (CONVOLUTION_SPEEDS, {**SOFTWARE, name: middle}))
            for row in found
            if row.software == name
        ]
    return kept


def _middle(own: Any, others: Sequence[Any], keys: str) -> Any:
    """Return `own` with medians of the others."""
    return replace(own, **{key: statistics.median(getattr(other, key) for other in others) for key in keys.split()})


def _residual(row: Row, case: Case, unit: str, constants: Constants) -> Residual:
    images = row.gpus * row.batch
    return of_miss(
        Miss(row.said(), images / predicted(row, kernels_of(row.gpu, row.software, constants)), images / row.images, row.group),
        "step",
        "cnn",
        case,
        unit=unit,
        work=f"{row.network} {row.dtype} {row.gpus} x {row.batch}, {row.software}, {row.exchange}",
        device=row.gpu,
    )


def reason(miss: Miss) -> str:
    """Return the cause of a large error."""
    if "alexnet" in miss.row:
        if "K80" in miss.group:
            return "5 x 5 and 3 x 3 convolutions of many channels: Kepler's constant is fitted to Inception's 3 x 3"
        return "FFT kernels for convolutions of many channels" if miss.predicted < miss.measured else "bound by reading images"
    if "se-res" in miss.row and miss.predicted > miss.measured:
        return ""
    if "P100" in miss.group and "gavel" in miss.group:
        return "measured times differ by 10 % from a line in the batch size"
    if "MxNet" in miss.group:
        return "norm, addition and activation are fused more in 16-bit than in 32-bit formats"
    return ""


def _score(name: str, found: Sequence[Row], bound: float, half: Half, reached: float | None = None) -> Score:
    misses = [Miss(row.said(), predicted(row), row.images, row.group) for row in found]
    return scored(name, misses, bound, half, why=reason, reached=reached)
