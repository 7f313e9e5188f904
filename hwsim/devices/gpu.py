"""A GPU: one compute capacity, one memory capacity, and the time a kernel takes to start.

Error: not yet measured.  Expect optimism for matrix products that fill the chip badly (no tiles
and waves), for ops whose data fits the L2 cache the opposite.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hwsim.demand import Capacity, Cost, Demand, Term
from hwsim.devices.roofline import (
    WORKLOAD,
    CannotCompute,
    Draw,
    Efficiency,
    LocalMemory,
    assemble,
    latency_terms,
    memory_draw,
    peak_of,
    precise,
    source_of,
    unknown_dtypes,
)
from hwsim.devices.work import Mix, Work
from hwsim.spec.fields import field
from hwsim.units import FlopPerSecond, PerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Gpu:
    """Roofline GPU.  `flop` holds dense peaks; a type without one runs in the next wider type
    that has one (tf32, bf16, fp16 in fp32; fp8 in fp16; fp4 in fp8)."""

    kind: ClassVar[str] = "gpu"
    flop: Mapping[str, FlopPerSecond] = field("dense peak by number format, e.g. {fp32: 15.7 TFLOP/s}", exclusive_minimum=0.0)
    memory: LocalMemory = field("its own memory (HBM, GDDR)")
    vector: Mapping[str, FlopPerSecond] = field(
        "peak outside the matrix units, where it differs from `flop`", default_factory=dict, exclusive_minimum=0.0
    )
    efficiency: Efficiency = field("part of the peaks that is reached", default_factory=Efficiency)
    launch: Seconds = field("from one kernel to the next in a stream, beyond their own time", default=0.0)
    random: PerSecond | None = field("random numbers per second", default=None, exclusive_minimum=0.0)
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)
    nvlinks: int | None = field("NVLink links it has; unchecked if left out", default=None, minimum=0)
    forwards: bool = field("passes on traffic between its neighbours", default=False)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if not self.flop:
            yield "flop", "a gpu needs at least one peak", "such as {fp32: 15.7 TFLOP/s}"
        yield from unknown_dtypes("flop", self.flop)
        yield from unknown_dtypes("vector", self.vector)

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return Capacity(f"{name}.compute", 1.0), Capacity(f"{name}.memory", 1.0)

    def compute(self, name: str, work: Work) -> Cost:
        """One kernel.

        Raises:
            CannotCompute: no peak for the type, or a number of cores (a kernel has the whole GPU).
        """
        if work.cores is not None:
            raise CannotCompute(f"{name} is a gpu: an op has all of it", "leave out `cores`")
        flop, mix, traffic = work.flop, work.mix, work.traffic
        why = self._drawing(name, flop) if mix == "random" else self._computing(name, flop, work.dtype, mix)
        draws = [Draw(f"{name}.compute", why.seconds, 1.0, flop, "1" if mix == "random" else "FLOP", why)]
        latency = self.memory.latency if traffic > 0 else 0.0
        return assemble(
            [*draws, memory_draw(name, traffic, self.memory, self.sources)],
            bandwidth=self.memory.bandwidth,
            latencies=latency_terms(
                self.sources,
                ("launch", "start of a kernel", self.launch, ""),
                ("memory.latency", "first access", latency, f"{name}.memory"),
            ),
        )

    def busy(self, name: str, seconds: float) -> Cost:
        """The whole GPU for a known time."""
        time = Term("time", "given", (("given", precise(seconds, "s"), WORKLOAD),), seconds)
        amounts = ((f"{name}.compute", seconds),) if seconds > 0 else ()
        return Cost(Demand(amounts=amounts, floor=seconds, share=seconds * self.memory.bandwidth or 1.0), why=(time,))

    def copy_bytes(self, name: str, size: float) -> tuple[str, float]:
        """What a transfer that leaves (or reaches) this memory draws of it: memory time."""
        return f"{name}.memory", size / self.memory.bandwidth

    def copy_latency(self) -> float:
        """Seconds before the first byte of a transfer that ends here."""
        return self.memory.latency

    def _computing(self, name: str, flop: float, dtype: str, mix: Mix) -> Term:
        table, key = self.flop, "flop"
        if mix != "matmul" and dtype in self.vector:
            table, key = self.vector, "vector"
        used, rate = peak_of(table, dtype, name)
        efficiency = self.efficiency.of(mix)
        what = "efficiency.matmul" if mix == "matmul" else "efficiency.vector"
        origin = f"{key}.{used}: {source_of(self.sources, f'{key}.{used}')}"
        inputs = (
            ("flop", precise(flop, "FLOP"), WORKLOAD),
            ("peak", precise(rate, "FLOP/s"), origin + (f"; {dtype} computed in {used}" if used != dtype else "")),
            ("efficiency", precise(efficiency, "%"), f"{what}: {source_of(self.sources, what)}"),
        )
        return Term("compute", "flop / (peak x efficiency)", inputs, flop / (rate * efficiency), f"{name}.compute")

    def _drawing(self, name: str, count: float) -> Term:
        if self.random is None:
            raise CannotCompute(f"{name} has no rate for random numbers", "add one as `random: 10e9 1/s`")
        rate = precise(self.random, "1/s"), f"random: {source_of(self.sources, 'random')}"
        inputs = (("numbers", precise(count, "1"), WORKLOAD), ("rate", *rate))
        return Term("compute", "numbers / rate", inputs, count / self.random, f"{name}.compute")
