"""A CPU core: its clock, vector units, instruction rate and branch misprediction penalty.

    FLOP per cycle = lanes x pipes x (2 with fused multiply-add)        lanes = bits of a register / bits of a number
    clock          = clock of the instruction class, higher if few cores are busy
    instructions   = instructions / (ipc x clock), plus mispredicted branches x mispredict / clock

Source: Hennessy and Patterson, "Computer Architecture", chapter 3; the vendors' optimisation manuals for pipes and widths.
Error: peaks are the datasheets' arithmetic, to the digit. `ipc` and `smt` are averages over programs: +-30 %.
Range: throughput of loops with independent instructions. No dependency chains, no decoder, no execution ports by instruction.
Thermal and power limits can shorten the boost clocks of the table.

Memory bandwidth of the busy cores of a socket, from NUMA domains and the bandwidth of one core:

A domain (half a socket, a quadrant, one die) has its own share of the memory. The bandwidth of n_d of its cores is

    B_d(n_d) = (1 / time per byte) of  ((n_d b1)^-p + B^-p)^(-1/p)         b1 a single core, B the domain, p the knee

Work is divided evenly among the cores in advance, with local data, so the op ends with the slowest domain:

    BW(n) = n min_d B_d(n_d) / n_d         cores fill one domain after another

A byte written takes `write_cost` times as long as a byte read, because the bus changes direction.
Source: the rule and the knee fit likwid-bench on four server CPUs (kerncraft's machine files): see docs/validation.
Error: there, 1 to 5 % mean over kernels and core counts; the sum over domains instead is wrong by up to 47 %.
Range: static division of the work and data in the domain of its core; a scheduler that moves work reaches the sum.

Cache lines that several cores write: core-to-core transfers and false sharing.

One core at a time owns a line. If n cores each make `times` increments in a line that they share (one counter, or counters in
the same line), the increments are serial:

    shared   cores x times x L_c2c(n)           L_c2c: average over the pairs of these cores
    own      times x cycles / clock              each counter in its own line: in parallel

Falsely shared counters are therefore slower than a single core, whatever the number of cores.
Source: cache coherence protocols (Sorin, Hill and Wood, "A Primer on Memory Consistency and Cache Coherence", 2011);
latencies: nviennot/core-to-core-latency, one way of a compare-and-swap ping-pong.
Error: docs/validation/components.md (core-to-core). The ratio shared / own is correct to a factor of 2 for plain stores:
with its store buffer, a core writes several times before it loses the line.
Range: a line that is written continuously. Interleaved readers, lock back-off and lock queues are not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final, Literal, get_args

from hwsim.demand import soft_min
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem, did_you_mean
from hwsim.units import BYTES, BytesPerSecond, Hertz, Ratio, Seconds

Isa = Literal["scalar", "sse", "avx", "avx2", "avx512", "neon", "sve", "vsx", "lasx"]
ISAS: Final[tuple[str, ...]] = get_args(Isa)


@dataclass(frozen=True, slots=True)
class BoostClock:
    """The clock of up to a number of busy cores."""

    cores: int = field("maximum number of busy cores at this clock", minimum=1)
    clock: Hertz = field("clock of the busy cores", exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class Instructions:
    """An instruction class: register width, pipes and clock."""

    pipes: int = field("number of arithmetic instructions issued per cycle", default=1, minimum=1)
    bits: int = field("register width in bits; 0: scalar", default=0, minimum=0)
    fma: bool = field("whether one instruction multiplies and adds (fused multiply-add)", default=False)
    formats: tuple[str, ...] = field("number formats of the arithmetic instructions", default=("fp64", "fp32"), one_or_many=True)
    clock: Hertz | None = field("clock with all cores busy (default: `clock` of the CPU)", default=None, exclusive_minimum=0.0)
    boost: tuple[BoostClock, ...] = field(
        "higher clocks with fewer busy cores, from the fewest cores on", default=(), one_or_many=True
    )

    def lanes(self, dtype: str) -> int:
        """Return the count of numbers in a register.

        >>> Instructions(bits=256).lanes("fp32"), Instructions().lanes("fp64")
        (8, 1)
        """
        return max(1, self.bits // int(8 * BYTES[dtype]))

    def per_cycle(self, dtype: str) -> float:
        """Return the FLOP per cycle and core.

        >>> Instructions(pipes=2, bits=512, fma=True).per_cycle("fp64")
        32.0
        """
        return float(self.lanes(dtype) * self.pipes * (2 if self.fma else 1))

    def clock_of(self, busy: int, otherwise: float) -> float:
        """Return the clock (Hz) with `busy` busy cores; `otherwise` if the class has no clock of its own.

        >>> Instructions(clock=3e9, boost=(BoostClock(1, 4e9), BoostClock(2, 3.5e9))).clock_of(2, 0)
        3500000000.0
        """
        return next((step.clock for step in self.boost if busy <= step.cores), self.clock or otherwise)


@dataclass(frozen=True, slots=True)
class Core:
    """A CPU core: instruction classes, and the cost of mispredicted branches and atomic operations in cycles."""

    isa: Mapping[str, Instructions] = field("instruction classes by name: scalar, sse, avx, avx2, avx512, neon, sve, ...",
                                            default_factory=dict)  # fmt: skip
    ipc: float | None = field("instructions per cycle of a single thread", default=None, exclusive_minimum=0.0)
    mispredict: float = field("branch misprediction penalty in cycles", default=0.0, minimum=0.0)
    threads: int = field("number of hardware threads (SMT)", default=1, minimum=1)
    smt: float = field("instructions per cycle of all hardware threads, relative to one thread", default=1.0, minimum=1.0)
    loads: float = field("number of loads issued per cycle", default=2.0, exclusive_minimum=0.0)
    streamed: float | None = field("bytes per cycle that a single busy core reads from memory in a stream; replaces "
                                   "`core_bandwidth`", default=None, exclusive_minimum=0.0, example="2.8")  # fmt: skip
    stored: float | None = field("bytes per cycle that a single busy core writes to memory; unlimited if omitted",
                                 default=None, exclusive_minimum=0.0, example="3.1")  # fmt: skip
    rmw: float = field("cycles of an atomic increment in a cache line that the core owns", default=20.0, minimum=0.0)
    store: float = field("cycles of a plain increment in a cache line that the core owns", default=5.0, minimum=0.0)

    def problems(self, cores: int, clock: float | None) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        for name, entry in self.isa.items():
            if name not in ISAS:
                yield f"core.isa.{name}", f"unknown instruction class '{name}'", did_you_mean(name, ISAS)
            if clock is None and entry.clock is None:
                yield f"core.isa.{name}", f"neither {name} nor the CPU has a clock", "add `clock: 2.4 GHz`"
            for dtype in entry.formats:
                if dtype not in BYTES:
                    yield f"core.isa.{name}.formats", f"unknown number format '{dtype}'", did_you_mean(dtype, BYTES)
            steps = [*entry.boost, BoostClock(cores, entry.clock or clock or 1.0)]
            for low, high in pairwise(steps):
                if high.cores < low.cores or (low.cores < cores and (low.cores + 1) * high.clock < low.cores * low.clock):
                    key = f"core.isa.{name}.boost"
                    yield key, f"{low.cores + 1} busy cores are slower in total than {low.cores}", "list the fewest cores first"
        if self.smt > self.threads:
            yield "core.smt", f"expected at most the number of `threads`, {self.threads}, got {self.smt:g}", None

    def rate(self, threads: int) -> float | None:
        """Return the instructions per cycle of `threads` hardware threads of a core; None if unknown."""
        if self.ipc is None:
            return None
        return self.ipc * (
            1.0 if self.threads == 1 else 1.0 + (self.smt - 1.0) * (min(threads, self.threads) - 1) / (self.threads - 1)
        )

    def of_sockets(self, sockets: int) -> Core:
        """Return this core for clocks that depend on the busy cores of all sockets together."""
        if sockets == 1:
            return self
        classes = {
            name: replace(entry, boost=tuple(BoostClock(step.cores * sockets, step.clock) for step in entry.boost))
            for name, entry in self.isa.items()
        }
        return replace(self, isa=classes)


@dataclass(frozen=True, slots=True)
class Numa:
    """The NUMA domains of a socket and their sustained memory bandwidth."""

    domains: int = field("number of NUMA domains of the socket; each has an equal share of the memory", default=1, minimum=1)
    efficiency: Ratio = field("sustained read bandwidth, relative to the bandwidth of `memory`",
                              default=1.0, exclusive_minimum=0.0, maximum=1.0)  # fmt: skip
    knee: float | None = field("sharpness of the knee between core-bound and domain-bound bandwidth; a sharp corner if omitted",
                               default=None, exclusive_minimum=0.0, example="3.5")  # fmt: skip
    write_cost: float = field("time to write a byte to memory, relative to the time to read one", default=1.0, minimum=0.0)
    core_write_cost: float = field("time to write a byte, relative to reading one, if one core is the bottleneck",
                                   default=1.0, minimum=0.0)  # fmt: skip
    remote_latency: Seconds = field("extra latency of memory in another domain or socket", default=0.0)
    remote_bandwidth: BytesPerSecond | None = field("bandwidth to memory in other domains or sockets, in each direction",
                                                    default=None, exclusive_minimum=0.0)  # fmt: skip

    def domain(self, cores: int, read: float, written: float, memory: float, core: float | None) -> float:
        """Return the time (s) in which `cores` cores of one domain transfer these bytes.

        Args:
            cores: number of busy cores of the domain.
            read: bytes read from memory.
            written: bytes written to memory.
            memory: bandwidth of the whole memory (B/s).
            core: bandwidth of a single core (B/s); None: unlimited.
        """
        shared = memory * self.efficiency / self.domains
        domain_rate = _weighted_rate(read + self.write_cost * written, shared)
        if core is None:
            return 1.0 / domain_rate if domain_rate > 0 else 0.0
        cores_rate = cores * _weighted_rate(read + self.core_write_cost * written, core)
        if math.isinf(cores_rate) or math.isinf(domain_rate):
            return 0.0 if math.isinf(min(cores_rate, domain_rate)) else 1.0 / min(cores_rate, domain_rate)
        return 1.0 / soft_min(cores_rate, domain_rate, self.knee or math.inf)

    def seconds(
        self, used: int, cores: int, read: float, written: float, memory: float, core: float | None
    ) -> tuple[float, tuple[int, ...]]:
        """Return (time in s of the slowest domain, cores by domain) if `used` of `cores` cores transfer these bytes.

        >>> two = Numa(domains=2)
        >>> [round(two.seconds(n, 4, 1.0, 0.0, 20.0, 8.0)[0], 3) for n in (1, 2, 3, 4)]
        [0.125, 0.1, 0.067, 0.05]
        """
        filled = fill(used, cores, self.domains)
        slowest = max(busy / used * self.domain(busy, read, written, memory, core) for busy in dict.fromkeys(filled))
        return slowest, filled


def fill(used: int, cores: int, domains: int) -> tuple[int, ...]:
    """Return the number of busy cores in each domain when domains are filled in order.

    >>> fill(5, 8, 2), fill(8, 8, 2)
    ((4, 1), (4, 4))
    """
    domain_cores = math.ceil(cores / domains)
    return tuple(min(domain_cores, used - start) for start in range(0, used, domain_cores))


def _weighted_rate(weight: float, rate: float) -> float:
    return rate / weight if weight > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Coherence:
    """The one-way latency of a cache line between cores, by their distance."""

    cluster: Seconds = field("one-way latency between cores of a cluster (a core complex, ring or mesh)", exclusive_minimum=0.0)
    cluster_cores: int | None = field("number of cores of a cluster (default: all cores of the socket)", default=None, minimum=1)
    across: Seconds | None = field("one-way latency between clusters of a socket (default: `cluster`)",
                                   default=None, exclusive_minimum=0.0)  # fmt: skip
    sockets: Seconds | None = field("one-way latency between sockets (default: `across`)", default=None, exclusive_minimum=0.0)
    threads: Seconds | None = field("one-way latency between hardware threads of a core",
                                    default=None, exclusive_minimum=0.0, record="increments use one thread per core")  # fmt: skip
    spread: float = field("standard deviation over mean of the latencies of equally distant pairs",
                          default=0.0, minimum=0.0, maximum=0.5, record="times use the average pair")  # fmt: skip

    def pairs(self, cores: int, sockets: int = 1, threads: int = 1) -> tuple[tuple[float, float], ...]:
        """Return (share of the pairs, latency in s) by kind of pair, nearest first.

        Args:
            cores: cores of each socket.
            sockets: number of sockets.
            threads: hardware threads of each core.

        >>> Coherence(cluster=20e-9, cluster_cores=4, across=90e-9).pairs(8)
        ((0.428..., 2e-08), (0.571..., 9e-08))
        """
        cluster = min(self.cluster_cores or cores, cores)
        thread_count = cores * sockets * threads
        cluster_pairs = math.floor(cores / cluster) * cluster * (cluster - 1) + (cores % cluster) * (cores % cluster - 1)
        socket_pairs = cores * (cores - 1) - cluster_pairs
        across_s = self.cluster if self.across is None else self.across
        sockets_s = across_s if self.sockets is None else self.sockets
        counts = (
            (thread_count * (threads - 1), self.threads if self.threads is not None else self.cluster),
            (cluster_pairs * sockets * threads**2, self.cluster),
            (socket_pairs * sockets * threads**2, across_s),
            (cores**2 * sockets * (sockets - 1) * threads**2, sockets_s),
        )
        pair_count = thread_count * (thread_count - 1)
        return tuple((count / pair_count, seconds) for count, seconds in counts if count > 0)

    def transfer(self, used: int, cores: int, sockets: int = 1) -> float:
        """Return the average time (s) to move a line between two of `used` cores that fill the sockets in turn; 0 for one core.

        >>> round(Coherence(cluster=20e-9, cluster_cores=4, across=90e-9).transfer(4, 8) * 1e9, 3)
        20.0
        """
        if used < 2:
            return 0.0
        per_socket = cores // sockets
        full, rest = divmod(used, per_socket)
        counts: list[tuple[float, float]] = []  # (pairs, seconds)
        for busy in (*(per_socket,) * full, rest):
            counts += [(part * busy * (busy - 1), seconds) for part, seconds in (self.pairs(busy) if busy > 1 else ())]
        within = sum(busy * (busy - 1) for busy in (*(per_socket,) * full, rest))  # integers
        across_s = self.cluster if self.across is None else self.across
        counts.append((used * (used - 1) - within, across_s if self.sockets is None else self.sockets))
        return math.fsum(count * seconds for count, seconds in counts) / (used * (used - 1))
