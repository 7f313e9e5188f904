"""A GPU: one compute capacity, one memory capacity, and the kernel launch latency.

Matmuls are cut into tiles (`matmul:`, see `hwsim.devices.gpu_matmul`); all other work follows a roofline. Memory and caches
follow `hwsim.devices.gpu_access`. Omitted keys are ideal.

**Error**: see `docs/validation/components.md`.
**Range**: kernels that the libraries provide; convolutions count as matmuls at peak x efficiency, without tiles.

Copies by the copy engines of a GPU, and by the other ways to move bytes into and out of it:

    by DMA, out of the GPU      setup + bytes / link
    by DMA, into the GPU        setup + fetch + bytes x fill / (bytes + fill) / link + bytes / (fetches x link)
    from pageable memory        + a core that copies to a pinned buffer: at least bytes / pageable
    by an SM (copy kernel)      at least bytes / kernel_host or kernel_peer
    by a core of the CPU        max(store_setup, bytes / stores), during which the core is busy
    inside one GPU              local_setup + 2 x bytes / (local x memory bandwidth)

An engine that reads host memory takes a round trip more than one that writes (`fetch`), and the link limits the reads in
flight (`fetches` of the link). While the first reads arrive, less than the link's bandwidth is used (`fill`).

**Source**: NVIDIA, "CUDA C++ Best Practices Guide", 10.1 (pinned and pageable copies); PCI Express Base Specification 2.2.9
(reads are requests and completions). Numbers: each part's own.
**Error**: V100 over PCIe 3.0, 1 kB to 68 MB pinned, half of the sizes fitted: see the report of the published copies.
**Range**: one copy at a time on each engine; pageable rates depend on the host's core and assume resident pages.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from hwsim.demand import Capacity, Cost, Term
from hwsim.devices.accesses import Accesses
from hwsim.devices.gpu_attention import EXPONENTIALS_PER_CLOCK, FLOP_PER_EXPONENTIAL, AttentionKernels, KernelRates
from hwsim.devices.gpu_experts import ExpertKernels, kernel_name_of
from hwsim.devices.gpu_matmul import Chip, Tiling, format_of, software_of, tiles_like
from hwsim.devices.gpu_memory import (
    Hierarchy,
    Launch,
    Level1,
    Level2,
    Occupancy,
    SustainedBandwidth,
    ThreadStream,
    memory_problems,
)
from hwsim.devices.kind import Device, prefix_problems
from hwsim.devices.line_errors import doubts
from hwsim.devices.power_curves import GpuPowerCurve
from hwsim.devices.roofline import (
    WORKLOAD,
    CapacityDraw,
    Efficiency,
    Input,
    LocalMemory,
    assemble,
    busy_cost,
    latency_term,
    peak_of,
    source_of,
    unknown_dtypes,
)
from hwsim.devices.work import AttentionCall, ExpertsCall, Mix, Start, Work
from hwsim.formats import precise
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, FlopPerSecond, Hertz, PerSecond, Ratio, Seconds, Watts

if TYPE_CHECKING:  # imported on the first kernel
    from hwsim.devices.gpu_access import StreamTimes
    from hwsim.devices.gpu_attention_cost import AttentionCost
    from hwsim.devices.gpu_matmul_cost import Floats, TiledMatmul

# fp32 FLOP of a normal number from a counter-based generator (Philox, ten rounds for four numbers) and the Box-Muller method:
# an estimate from the two algorithms, not measured.
FLOP_PER_RANDOM_NUMBER: Final = 100.0
MULTIPROCESSORS, CLOCK = 100, 1.7e9  # defaults: SMs, and Hz
GUESSED: Final = "random: " + Origin("guess", "for every GPU: ten rounds of Philox for four numbers, and Box-Muller")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCopies:
    """The speed of copies; the defaults are ideal: no setup, full bandwidth of the links."""

    setup: Seconds = field("startup time of a copy by a copy engine (DMA), before the first byte", default=0.0)
    fetch: Seconds = field("extra latency of a copy that reads host memory: a round trip", default=0.0)
    waited: Seconds = field("extra time of a copy that the program waits for (cudaMemcpy)", default=0.0)
    fill: Bytes = field("ramp-up of a copy that reads host memory: bytes until it runs at full speed", default=0.0)
    local_setup: Seconds = field("startup time of a copy within GPU memory", default=0.0)
    local: Ratio | None = field("share of the memory bandwidth that a copy within GPU memory reaches (default: `sustained.copy`)",
                                default=None, exclusive_minimum=0.0)  # fmt: skip
    pageable: BytesPerSecond | None = field("bandwidth of a copy from or to pageable host memory; as pinned memory if omitted",
                                            default=None, exclusive_minimum=0.0)  # fmt: skip
    kernel_host: BytesPerSecond | None = field("bandwidth of a copy kernel from or to the host; unlimited if omitted",
                                               default=None, exclusive_minimum=0.0)  # fmt: skip
    kernel_peer: BytesPerSecond | None = field("bandwidth of a copy kernel from or to another GPU; unlimited if omitted",
                                               default=None, exclusive_minimum=0.0)  # fmt: skip
    store_setup: Seconds = field("minimum time of a copy by a CPU core", default=0.0)
    stores: BytesPerSecond | None = field("bandwidth of a CPU core that writes to GPU memory; unlimited if omitted",
                                          default=None, exclusive_minimum=0.0)  # fmt: skip
    loads: BytesPerSecond | None = field("bandwidth of a CPU core that reads GPU memory (default: its line-fill buffers, one "
                                         "round trip per cache line)", default=None, exclusive_minimum=0.0)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gpu(Device):
    """A roofline model of a GPU. `flop` contains dense peaks; a number format without a peak runs in the next wider format
    that has one (tf32, bf16, fp16 in fp32; fp8 in fp16; fp4 in fp8; int4 in int8).
    """

    kind: ClassVar[str] = "gpu"
    flop: Mapping[str, FlopPerSecond] = field("dense peak FLOP/s by number format, e.g. {fp32: 15.7 TFLOP/s}",
                                              exclusive_minimum=0.0)  # fmt: skip
    memory: LocalMemory = field("memory of the GPU (HBM or GDDR)")
    vector: Mapping[str, FlopPerSecond] = field("peak FLOP/s outside the matrix units, where it differs from `flop`",
                                                default_factory=dict, exclusive_minimum=0.0)  # fmt: skip
    efficiency: Efficiency = field("achieved share of the peaks", default_factory=Efficiency)
    launch: Seconds | Launch = field("kernel launch latency: gap between consecutive kernels of a stream", default=0.0)
    sms: int | None = field("number of streaming multiprocessors (SMs) or compute units", default=None, minimum=1)
    clock: Hertz | None = field("boost clock", default=None, exclusive_minimum=0.0)
    matmul: Mapping[str, Tiling] = field("tiles and waves of matmuls by number format (default: peak x efficiency)",
                                         default_factory=dict)  # fmt: skip
    vendor: str | None = field("vendor: nvidia or amd; with `generation`, it selects the class defaults", default=None)
    generation: str | None = field("architecture: hopper, blackwell, cdna3", default=None)
    attention: Ratio | AttentionKernels | None = field(
        "fused attention kernels, or the share of the peak that they reach on long sequences (default: class default)",
        default=None, exclusive_minimum=0.0)  # fmt: skip
    experts: Mapping[str, ExpertKernels] = field(
        "mixture-of-experts kernels by library and number format (default: typical kernels)", default_factory=dict
    )
    random: PerSecond | None = field("random numbers per second (default: 100 fp32 FLOP for each)",
                                     default=None, exclusive_minimum=0.0)  # fmt: skip
    l1: Level1 | None = field("L1 cache of an SM", default=None)
    l2: Level2 | None = field("L2 cache", default=None)
    sustained: SustainedBandwidth = field("sustained share of the memory bandwidth", default_factory=SustainedBandwidth)
    occupancy: Occupancy | None = field("threads required to saturate the memory; any number of threads does if omitted",
                                        default=None)  # fmt: skip
    power: Watts | GpuPowerCurve | None = field("maximum power; or idle power, power at full load and in memory-bound kernels",
                                                default=None, example="700 W", kw_only=True)  # fmt: skip
    copies: GpuCopies = field(
        "copy bandwidth into and out of the GPU (default: bandwidth of the links)", default_factory=GpuCopies
    )
    pcie: int | None = field("PCIe generation; a faster slot runs at this generation", default=None, minimum=1)
    nvlinks: int | None = field("number of NVLink links; not checked if omitted", default=None, minimum=0)
    forwards: bool = field("whether the GPU forwards traffic between its neighbours", default=False)

    def problems(self) -> Iterator[Problem]:
        if not self.flop:
            yield "flop", "a GPU requires at least one peak", "add `flop: {fp32: 15.7 TFLOP/s}`"
        yield from unknown_dtypes("flop", self.flop)
        yield from unknown_dtypes("vector", self.vector)
        yield from unknown_dtypes("matmul", {key: 0.0 for key in self.matmul if format_of(key) is None})
        if self.matmul and self.sms is None:
            yield "matmul", "`matmul` requires the number of SMs", "add `sms: 80`"
        if isinstance(self.attention, AttentionKernels):
            yield from prefix_problems("attention", self.attention.problems())
        for dtype, tiling in self.matmul.items():
            yield from prefix_problems(f"matmul.{dtype}", tiling.problems())
        yield from memory_problems(self.hierarchy)

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return Capacity.of(name, "compute"), Capacity.of(name, "memory")

    def compute(self, name: str, work: Work) -> Cost:
        """Return the cost of one kernel.

        Raises:
            CannotCompute: there is no peak for the number format.
        """
        if work.attention is not None:
            return self._attention(name, work, work.attention).cost()
        if work.experts is not None:
            return self._experts_cost(name, work, work.experts)
        from hwsim.devices.gpu_access import stream

        flop, mix, traffic = work.flop, work.mix, work.traffic
        tiled = self._tiled(name, work)
        if tiled is not None:
            return self._product(name, tiled)
        served = stream(name, self.hierarchy, ThreadStream(reads=work.reads, writes=work.writes, working_set=work.working_set))
        starting = self._start_terms(name, traffic, work.kernels, work.start)
        why = self._random_term(name, flop) if mix == "random" else self._compute_term(name, flop, work.dtype, mix)
        draws = (CapacityDraw(f"{name}.compute", why.seconds, 1.0, flop, "1" if mix == "random" else "FLOP", why),)
        return self._served(name, served, draws, starting)

    def _product(self, name: str, tiled: TiledMatmul) -> Cost:
        """Return the cost of a tiled matmul. In a stream, the host launches it while the previous kernel runs, as in a graph."""
        starting, least = self._launch_terms(name, tiled)
        draws, served, floor, starts = tiled.draws(tiled.served(), starting, least)
        return self._served(name, dataclasses.replace(served, floor=floor), draws, starts)

    def _launch_terms(self, name: str, tiled: TiledMatmul) -> tuple[list[Term], float]:
        """Return the launch terms of a matmul, and the time (s) in which the host launches one kernel."""
        work, launch = tiled.work, self.launch
        follows = work.start == "stream" and work.kernels == 1 and isinstance(launch, Launch) and launch.graph is not None
        traffic = 0.0 if tiled.tiling.start > 0 else work.traffic  # a measured start includes the first access
        starting = self._start_terms(name, traffic, work.kernels, "graph" if follows else work.start)
        return starting, launch.stream if follows and isinstance(launch, Launch) else 0.0

    def by_rows(
        self, work: Work, rows: Floats, *, depth: bool = False, streamed: bool = False
    ) -> tuple[Floats, Floats, Floats] | None:
        """Return (time, SM time, memory time) of a matmul in s for each number of rows, or for each depth (k).

        Returns None if these times can only be computed one by one, and, unless `streamed`, if operands are read as a stream.
        """
        tiled = self._tiled("gpu", work)
        if tiled is None:
            return None
        starting, least = self._launch_terms("gpu", tiled)
        return tiled.by_rows(rows, math.fsum(term.seconds for term in starting), least, depth=depth, streamed=streamed)

    def attend(self, work: Work, call: AttentionCall) -> tuple[float, float, float]:
        """Return (time, SM time, memory time) of fused attention calls like that of `work`, for numbers or arrays."""
        assert work.attention is not None
        return self._attention("gpu", work, work.attention).times(call)

    def access(self, name: str, accesses: Accesses) -> Cost:
        """Return the cost of reads and writes of single words by one kernel."""
        from hwsim.devices.gpu_access import scattered_access

        return self._served(name, scattered_access(name, self.hierarchy, accesses), (), self._start_terms(name, accesses.count))

    def stream(self, name: str, streamed: ThreadStream) -> Cost:
        """Return the cost of one kernel that only moves data, with a given number of threads."""
        from hwsim.devices.gpu_access import stream

        return self._served(
            name,
            stream(name, self.hierarchy, streamed),
            (),
            self._start_terms(name, streamed.reads + streamed.writes, 1, streamed.start),
        )

    @property
    def hierarchy(self) -> Hierarchy:
        """Memory levels that serve reads and writes."""
        return Hierarchy(self.memory, self.sustained, self.sms, self.l1, self.l2, self.occupancy, self.sources)

    def _served(self, name: str, served: StreamTimes, draws: Sequence[CapacityDraw], latencies: Sequence[Term]) -> Cost:
        draws, clock = [*draws, served.draw], f"{name}.compute"
        cost = assemble(draws, clock=clock, bandwidth=self.memory.bandwidth, floor=served.floor, latencies=latencies)
        return dataclasses.replace(cost, why=(*cost.why, *served.terms)) if served.terms else cost

    def _start_terms(self, name: str, traffic: float, kernels: int = 1, start: Start = "stream") -> list[Term]:
        launch = self.launch if isinstance(self.launch, Launch) else Launch(self.launch)
        key, seconds = launch.by(start)
        source = source_of(self.sources, f"launch.{key}" if isinstance(self.launch, Launch) else "launch")
        terms = []
        if seconds * kernels > 0:
            formula = "kernels x start" if kernels > 1 else "start of a kernel"
            inputs: tuple[Input, ...] = (("start" if kernels > 1 else formula, precise(seconds, "s"), source),)
            if kernels > 1:
                inputs = ("kernels", str(kernels), WORKLOAD), *inputs
            unsure = doubts(f"launch/{key}", name, source, kernels * seconds)
            terms.append(Term("latency", formula, inputs, kernels * seconds, kind="latency", doubts=unsure))
        if self.memory.latency > 0 and traffic > 0:
            origin = source_of(self.sources, "memory.latency")
            terms.append(latency_term("first access", self.memory.latency, origin, f"{name}.memory", name))
        return terms

    def busy(self, name: str, seconds: float) -> Cost:
        """Return the cost of a known time on the whole GPU."""
        return busy_cost("given", f"{name}.compute", seconds, 1, self.memory)

    def access_latency(self) -> float:
        """Return the latency of a read from memory (s); 0 if not given."""
        return (self.l2.miss if self.l2 is not None else 0.0) or self.memory.latency

    def copy_bytes(self, name: str, size: float) -> tuple[str, float]:
        """Return the memory capacity and the memory time (s) that a transfer to or from this memory takes."""
        return f"{name}.memory", size / self.memory.bandwidth

    def copy_latency(self) -> float:
        """Return the latency (s) to the first byte of a transfer that ends here."""
        return self.memory.latency

    def tiles(self, dtype: str, variant: str = "", software: str = "") -> Tiling | None:
        """Return the tiling of matmuls in a number format; None if the GPU has none."""
        compute_dtype, _ = peak_of(self.flop, dtype, "it")
        key = tiles_like(compute_dtype, self.matmul, variant, software)
        return None if key is None else self.matmul[key]

    def libraries(self, part: Literal["attention", "experts", "matmul"]) -> tuple[str, ...]:
        """Return the names of the libraries whose kernels are modelled separately."""
        if part == "matmul":
            return tuple(sorted({name for name in map(software_of, self.matmul) if name}))
        kernels: Mapping[str, Any] = self.experts
        if part == "attention":
            kernels = {**self.attention.prefill, **self.attention.decode} if isinstance(self.attention, AttentionKernels) else {}
        return tuple(sorted({name.partition(" ")[0] for name in kernels}))

    def _tiled(self, name: str, work: Work) -> TiledMatmul | None:
        if work.mix != "matmul" or work.product is None or self.sms is None or not self.matmul:
            return None
        compute_dtype, rate = peak_of(self.flop, work.dtype, name)
        key = tiles_like(compute_dtype, self.matmul, work.product.variant, work.product.software)
        if key is None:
            return None
        from hwsim.devices.gpu_matmul_cost import TiledMatmul

        origin = f"flop.{compute_dtype}: " + source_of(self.sources, f"flop.{compute_dtype}")
        return TiledMatmul(
            name=name,
            work=work,
            product=work.product,
            key=key,
            tiling=self.matmul[key],
            chip=Chip(self.sms, rate * self.efficiency.matmul, self.memory.bandwidth),
            peak_source=origin + (f"; {work.dtype} computed in {compute_dtype}" if compute_dtype != work.dtype else ""),
            parts=self.hierarchy,
            sources=self.sources,
        )

    def attending(self, dtype: str, name: str = "gpu") -> KernelRates:
        """Return the rates that determine fused attention in a number format; omitted rates are estimated.

        Raises:
            CannotCompute: there is no peak for the number format.
        """
        multiprocessors = self.sms or MULTIPROCESSORS
        return KernelRates(
            peak=peak_of(self.flop, dtype, name)[1],
            exponentials=max(
                EXPONENTIALS_PER_CLOCK * multiprocessors * (self.clock or CLOCK),
                peak_of(self.flop, "bf16", name)[1] / FLOP_PER_EXPONENTIAL,
            ),
            bandwidth=self.memory.bandwidth,
            read=self.memory.bandwidth * self.sustained.read,
            multiprocessors=float(multiprocessors),
            cache=(self.l2.size or 0.0) if self.l2 is not None else 0.0,
        )

    def _attention(self, name: str, work: Work, call: AttentionCall) -> AttentionCost:
        from hwsim.devices.gpu_attention_cost import AttentionCost

        compute_dtype = peak_of(self.flop, work.dtype, name)[0]
        return AttentionCost(
            name=name,
            work=work,
            call=call,
            kernels=self.attention if isinstance(self.attention, AttentionKernels) else AttentionKernels(),
            rates=self.attending(work.dtype, name),
            peaks=lambda dtype: self.attending(dtype, name),
            peak_source=f"flop.{compute_dtype}: " + source_of(self.sources, f"flop.{compute_dtype}"),
            sources=self.sources,
            share=self.attention if isinstance(self.attention, float) else None,
        )

    def _experts_cost(self, name: str, work: Work, call: ExpertsCall) -> Cost:
        from hwsim.devices.gpu_attention_cost import experts_cost

        key = kernel_name_of(call.kernel, self.experts)
        kernel = self.experts[key] if key else ExpertKernels()
        return experts_cost(name, call, kernel, self.attending(work.dtype, name), self.sources, key=key)

    def _compute_term(self, name: str, flop: float, dtype: str, mix: Mix) -> Term:
        table, key = self.flop, "flop"
        if mix != "matmul" and dtype in self.vector:
            table, key = self.vector, "vector"
        actual, rate = peak_of(table, dtype, name)
        efficiency = self.efficiency.of(mix)
        efficiency_key = "efficiency.matmul" if mix == "matmul" else "efficiency.vector"
        tiles = tiles_like(actual, self.matmul) if mix == "matmul" else None
        if tiles is not None:  # a large matmul, because the op states no shape
            efficiency, efficiency_key = efficiency * self.matmul[tiles].efficiency, f"matmul.{tiles}.efficiency"
        origin = f"{key}.{actual}: " + source_of(self.sources, f"{key}.{actual}")
        inputs = (
            ("flop", precise(flop, "FLOP"), WORKLOAD),
            ("peak", precise(rate, "FLOP/s"), origin + (f"; {dtype} computed in {actual}" if actual != dtype else "")),
            ("efficiency", precise(efficiency, "%"), f"{efficiency_key}: " + source_of(self.sources, efficiency_key)),
        )
        return Term("compute", "flop / (peak x efficiency)", inputs, flop / (rate * efficiency), f"{name}.compute")

    def _random_term(self, name: str, count: float) -> Term:
        if self.random is not None:
            rate = precise(self.random, "1/s"), "random: " + source_of(self.sources, "random")
            rate_inputs = (("numbers", precise(count, "1"), WORKLOAD), ("rate", *rate))
            return Term("compute", "numbers / rate", rate_inputs, count / self.random, f"{name}.compute")
        term = self._compute_term(name, count * FLOP_PER_RANDOM_NUMBER, "fp32", "vector")
        flop_each = ("each", precise(FLOP_PER_RANDOM_NUMBER, "FLOP"), GUESSED)
        inputs = (("numbers", precise(count, "1"), WORKLOAD), flop_each, *term.inputs[1:])
        return dataclasses.replace(term, formula="numbers x each / (peak x efficiency)", inputs=inputs)
