"""A convolution on a GPU: the fastest algorithm of the libraries, as consecutive kernels.

fastest(shape, dtype, constants, alone, matrix_units=...)      # kernels with their times
convolved("gpu0", gpu, (shape, ...), dtype)                    # the cost of all of them in one op
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Term, rates_of
from hwsim.devices.convolution import ConvolutionPass
from hwsim.devices.convolution_speeds import CONVOLUTION_SPEEDS, ConvolutionSpeeds, matrix_units, units_of
from hwsim.devices.gpu import Gpu
from hwsim.devices.gpu_cases import case, gpu_label
from hwsim.devices.kernel_sequence import sequence_cost
from hwsim.devices.work import Start, Work
from hwsim.formats import precise
from hwsim.origins import UncertaintySource
from hwsim.records import dataclass
from hwsim.units import BYTES

CONVOLUTION: Final = "convolution"  # label of the line of a convolution kernel


@dataclass(frozen=True, slots=True)
class TimedKernel:
    """A kernel of a library with its time.

    Args:
        work: work of the kernel.
        slower: ratio of its time to that of the GPU's own model.
        seconds: its time (s).
    """

    work: Work
    slower: float
    seconds: float


def fastest(
    shape: ConvolutionPass, dtype: str, constants: ConvolutionSpeeds, alone: Callable[[Work], float], *, matrix_units: bool
) -> tuple[TimedKernel, ...]:
    """Return the kernels of the fastest algorithm of a convolution.

    Args:
        shape: geometry of the convolution.
        dtype: number format.
        constants: speeds of convolution kernels.
        alone: function that returns the time of the GPU's own model (s).
        matrix_units: whether units that only multiply matrices compute the number format.
    """
    ways = []
    for way in shape.ways(dtype, matrix_units=matrix_units):
        part = constants.part if len(way) == 1 else constants.transformed
        copied: tuple[Work, ...] = ()
        if constants.reordered and way[0].mix == "matmul":
            images = shape.images_moved(BYTES[dtype])
            copied = (Work(reads=images, writes=images, dtype=dtype, working_set=2 * images),)
        ways.append(tuple(_timed(work, part, constants, alone) for work in (*copied, *way)))
    return min(ways, key=lambda way: math.fsum(timed.seconds for timed in way))


def _timed(work: Work, part: float, constants: ConvolutionSpeeds, alone: Callable[[Work], float]) -> TimedKernel:
    """Return one kernel: arithmetic at a share of the matmul's speed, transfers as in the GPU's model."""
    seconds, slower = alone(work), 1.0
    if work.flop > 0.0:
        part = part if work.mix == "matmul" else constants.direct
        moving = alone(Work(reads=work.reads, writes=work.writes, dtype=work.dtype))
        slower = max(seconds / part, moving) / seconds
    return TimedKernel(work, slower, seconds * slower)


def convolution_cost(
    name: str, gpu: Gpu, shapes: Sequence[ConvolutionPass], dtype: str, start: Start = "stream", more: Sequence[Work] = ()
) -> Cost:
    """Return the cost of convolutions in one op, each with its fastest algorithm, and of `more` kernels after them.

    Raises:
        CannotCompute: there is no peak for the number format.
    """
    matrix, constants = matrix_units(gpu, dtype), CONVOLUTION_SPEEDS[units_of(gpu, dtype)]
    rates = rates_of(gpu.capacities(name))
    costs: dict[Work, Cost] = {}

    def cost(work: Work) -> Cost:
        if work not in costs:
            costs[work] = gpu.compute(name, replace(work, start=start))
        return costs[work]

    kernels = [
        (shape.what, timed)
        for shape in shapes
        for timed in fastest(shape, dtype, constants, lambda work: cost(work).demand.alone(rates), matrix_units=matrix)
    ]
    turns: list[tuple[str, Cost]] = [
        (direction, scale_kernel(cost(timed.work), timed.slower, rates, f"{name}.compute")) for direction, timed in kernels
    ]
    turns += [("bias", cost(work)) for work in more]
    doubt = UncertaintySource("conv/*", case(gpu, "matmul", dtype), gpu_label(gpu, dtype), 0.0)
    return sequence_cost(turns, rates, f"{name}.compute", doubt=doubt)


def scale_kernel(cost: Cost, slower: float, rates: Mapping[str, float], compute: str) -> Cost:
    """Return the cost of a kernel that takes `slower` times as long: the arithmetic units (`compute`) are busy longer."""
    if abs(slower - 1.0) < 1e-12:
        return cost
    demand = cost.demand
    unscaled_s = demand.alone(rates)
    seconds = unscaled_s * slower
    latency = min(demand.latency, seconds)
    body = seconds - latency
    amounts = []
    for name, amount in demand.amounts:
        max_amount = body * rates[name]
        scaled_amount = max_amount if name == compute and slower > 1.0 else amount * min(slower, 1.0)
        amounts.append((name, min(scaled_amount, max_amount)))
    longest = max((amount / rates[name] for name, amount in amounts), default=0.0)
    peak = [input_ for term in cost.why for input_ in term.inputs if input_[0] == "peak"][:1]
    inputs = (
        ("product", precise(unscaled_s, "s"), "the same matmul"),
        ("times", precise(slower, "1"), "slowdown of the libraries' kernels: devices/convolving"),
        *peak,
    )
    why = Term(CONVOLUTION, "product x times", inputs, body, compute if any(name == compute for name, _ in amounts) else "")
    latencies = tuple(term for term in cost.why if term.kind == "latency")
    floor = body if longest < body * (1 - 1e-12) else 0.0
    return replace(cost, demand=replace(demand, latency=latency, amounts=tuple(amounts), floor=floor), why=(*latencies, why))
