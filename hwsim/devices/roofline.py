"""The roofline of one op on one compute device, and its derivation.

    time = latency + max(floor, flop / (peak x efficiency), traffic / bandwidth)

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
Error: an upper bound of the speed if an efficiency has its default of 100 %. `traffic` is the memory traffic:
no cache is modelled, so the predicted time of an op whose data stay in a cache is too long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.devices.dram import Dram
from hwsim.devices.work import Mix
from hwsim.formats import precise
from hwsim.origins import GIVEN, IDEAL, Cited, Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import HintedError, Problem, did_you_mean
from hwsim.units import BYTES, Bytes, BytesPerSecond, Ratio, Seconds

Input = tuple[str, str, Cited]  # name, value with unit, source

WORKLOAD: Final = Origin("stated", "workload")  # source of the op's own numbers


# Next wider number format, in which a device without units for a number format computes.
WIDER: Final[Mapping[str, str]] = {
    "tf32": "fp32", "bf16": "fp32", "fp16": "fp32", "fp8": "fp16", "fp4": "fp8", "int4": "int8",
    "bool": "int32", "int16": "int32", "int32": "fp32", "int64": "fp64",  # integers use vector units of the same width
    "complex64": "fp32", "complex128": "fp64",
}  # fmt: skip


class CannotCompute(HintedError):
    """An error about a number that the device does not have; `hint` names the key that sets it."""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The achieved share of a peak, by kind of op."""

    matmul: Ratio = field("share of the peak reached by matmuls and convolutions",
                          default=1.0, exclusive_minimum=0.0, maximum=1.0)  # fmt: skip
    vector: Ratio = field("share of the peak reached by elementwise ops and reductions",
                          default=1.0, exclusive_minimum=0.0, maximum=1.0)  # fmt: skip

    def of(self, mix: Mix) -> float:
        return self.matmul if mix == "matmul" else self.vector


@dataclass(frozen=True, slots=True)
class LocalMemory:
    """The memory of a compute device.

    Its bandwidth is as stated, else the one that its DRAM sustains over all channels: `memory: {use: ddr4-3200, channels: 2}`.

    Raises:
        ValueError: neither is given, the DRAM's timings contradict each other, or there are more channels than the device has.
    """

    bandwidth: BytesPerSecond = field("bandwidth of reads and writes together; with a `dram`, by default that of a stream over "
                                      "all channels", default=0.0, exclusive_minimum=0.0)  # fmt: skip
    size: Bytes | None = field("capacity; unlimited if omitted", default=None, exclusive_minimum=0.0)
    latency: Seconds = field("latency to the first byte of an op or a copy", default=0.0)
    use: str | None = field("name of a memory in the library, which sets `dram`", default=None, example="ddr4-3200")
    dram: Dram | None = field("DRAM of the memory; on a GPU it sets only the bandwidth", default=None)
    channels: int | None = field("number of populated channels; overrides that of `dram`", default=None, minimum=1)
    max_channels: int | None = field("number of channels of the device; not checked if omitted", default=None, minimum=1)
    dimms: int | None = field("number of memory modules (DIMMs)", default=None, minimum=1)

    def __post_init__(self) -> None:
        dram, bandwidth = populated_memory(self.dram, self.channels, self.bandwidth)
        object.__setattr__(self, "dram", dram)
        object.__setattr__(self, "bandwidth", bandwidth)
        for key, message, _ in dram.problems() if dram else ():
            raise ValueError(f"dram.{key}: {message}")
        if dram is not None and self.max_channels is not None and dram.channels > self.max_channels:
            raise ValueError(f"expected at most the device's {self.max_channels} memory channels, got {dram.channels}")
        if self.dimms is not None and self.channels is not None and self.dimms < self.channels:
            raise ValueError(f"expected at least a DIMM for each of {self.channels} channels, got {self.dimms}")


def populated_memory(dram: Dram | None, channels: int | None, bandwidth: float) -> tuple[Dram | None, float]:
    """Return the DRAM with a number of channels, and its bandwidth (B/s): the stated one (not 0), else the bandwidth of a stream.

    Raises:
        ValueError: neither a bandwidth nor a DRAM is given.
    """
    if dram is None:
        if channels is not None:
            raise ValueError("`channels` requires a DRAM: add `use: ddr4-3200` or `dram:`")
        if bandwidth <= 0:
            raise ValueError("a memory requires a `bandwidth`, or a `dram` to derive it from (`use: ddr4-3200`)")
        return None, bandwidth
    dram = dram if channels is None else replace(dram, channels=channels)
    return dram, bandwidth if bandwidth > 0 else dram.stream()


def source_of(sources: Mapping[str, Origin], key: str) -> Origin:
    """Return the source of the number under `key`: an omitted number is a default; a bandwidth may be derived from the DRAM."""
    if sources and key not in sources and key.endswith("bandwidth"):
        rate = sources.get(key.removesuffix("bandwidth") + "dram.rate")
        if rate is not None:
            return "of a stream over all channels, dram.rate: " + rate
    return sources.get(key, IDEAL) if sources else GIVEN


def peak_of(peaks: Mapping[str, float], dtype: str, where: str) -> tuple[str, float]:
    """Return (number format of the computation, its peak): the number format itself or the next wider one with a peak.

    Raises:
        CannotCompute: no such number format has a peak.
    """
    compute_dtype: str | None = dtype
    while compute_dtype is not None and compute_dtype not in peaks:
        compute_dtype = WIDER.get(compute_dtype)
    if compute_dtype is None:
        names = ", ".join(name for name in BYTES if name in peaks) or "none"
        raise CannotCompute(f"{where} has no peak for {dtype}", f"available: {names}; add one as `flop: {{{dtype}: ...}}`")
    return compute_dtype, peaks[compute_dtype]


def unknown_dtypes(key: str, peaks: Mapping[str, float]) -> Iterator[Problem]:
    """Yield (key, message, hint) for each unknown number format."""
    for dtype in peaks:
        if dtype not in BYTES:
            yield f"{key}.{dtype}", f"unknown number format '{dtype}'", did_you_mean(dtype, BYTES)


@dataclass(frozen=True, slots=True)
class CapacityDraw:
    """The use of one capacity by an op.

    Args:
        capacity: name of the capacity.
        amount: amount drawn, in units of the capacity.
        rate: amount that the capacity provides per second.
        work: amount in natural units.
        unit: natural unit.
        why: line of the derivation.
    """

    capacity: str
    amount: float
    rate: float
    work: float
    unit: Unit
    why: Term


def assemble(
    draws: Sequence[CapacityDraw], *, clock: str, bandwidth: float, floor: float = 0.0, latencies: Sequence[Term] = ()
) -> Cost:
    """Return the cost of these draws together; its share is the longest draw (s) x `bandwidth`.

    clock: the capacity whose speed also scales the latency and the floor, which draw nothing.
    """
    positive = sorted((draw for draw in draws if draw.amount > 0), key=lambda draw: draw.capacity)
    longest = max((draw.amount / draw.rate for draw in positive), default=0.0)
    return Cost(
        Demand(
            latency=math.fsum(term.seconds for term in latencies),
            amounts=tuple((draw.capacity, draw.amount) for draw in positive),
            floor=floor,
            share=longest * bandwidth or 1.0,
            clocks=((clock, 1.0),),
            start=1.0,
        ),
        moved=tuple((draw.capacity, draw.work, draw.unit) for draw in positive),
        why=(*latencies, *dict.fromkeys(draw.why for draw in draws)),
    )


def busy_cost(given: str, capacity: str, seconds: float, parts: int, memory: LocalMemory) -> Cost:
    """Return the cost of a known time on one of the `parts` of a device; `given` names the time in the derivation."""
    time = Term("time", given, ((given, precise(seconds, "s"), WORKLOAD),), seconds, kind="stated")
    amounts = ((capacity, seconds),) if seconds > 0 else ()
    share = seconds / parts * memory.bandwidth or 1.0
    return Cost(Demand(amounts=amounts, floor=seconds, share=share, clocks=((capacity, 1.0),)), why=(time,))


def latency_terms(sources: Mapping[str, Origin], *parts: tuple[str, str, float, str, str]) -> list[Term]:
    """Return a line for each nonzero latency (key, label, seconds, capacity, holder)."""
    return [latency_term(label, seconds, source_of(sources, key), *names) for key, label, seconds, *names in parts if seconds > 0]


def latency_term(what: str, seconds: float, source: Cited, capacity: str = "", holder: str = "") -> Term:
    """Return a line of the derivation that consists of one number."""
    return Term("latency", what, ((what, precise(seconds, "s"), source),), seconds, capacity, "latency", holder=holder)
