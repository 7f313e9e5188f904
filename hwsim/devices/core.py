"""One core of a CPU: its clock, its vector units, how many instructions it starts, what a wrong guess costs.

    FLOP per cycle = lanes x pipes x (2 with fused multiply-add)        lanes = bits of a register / bits of a number
    clock          = that of the class of instructions, higher while few cores are busy
    instructions   = instructions / (ipc x clock), branches guessed wrong x mispredict / clock on top

Source: Hennessy and Patterson, "Computer Architecture", chapter 3; the vendors' optimisation manuals for pipes and widths.
Error: peaks are the datasheets' arithmetic, to the digit.  `ipc` and `smt` are averages over programs: +-30 %.
Range: throughput of loops whose instructions do not wait for each other.  No dependency chains, no decoder, no ports by
kind of instruction; heat and power shorten a boost that the table of clocks promises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final, Literal, get_args

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import did_you_mean
from hwsim.units import Hertz

Isa = Literal["scalar", "sse", "avx", "avx2", "avx512", "neon", "sve", "vsx", "lasx"]
ISAS: Final[tuple[str, ...]] = get_args(Isa)
BITS: Final[Mapping[str, int]] = {
    "fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "fp4": 4,
    "int64": 64, "int32": 32, "int8": 8, "int4": 4, "bool": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Busy:
    """The clock while at most so many cores are busy."""

    cores: int = field("busy cores, at most", minimum=1)
    clock: Hertz = field("their clock", exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class Instructions:
    """One class of instructions: register width, pipes that take them, and the clock they run at."""

    pipes: int = field("arithmetic instructions started per cycle", default=1, minimum=1)
    bits: int = field("register width; 0: one number at a time", default=0, minimum=0)
    fma: bool = field("multiplies and adds in one instruction", default=False)
    formats: tuple[str, ...] = field("number formats it computes in", default=("fp64", "fp32"), one_or_many=True)
    clock: Hertz | None = field("with all cores busy (default: `clock` of the cpu)", default=None, exclusive_minimum=0.0)
    boost: tuple[Busy, ...] = field("higher clocks of fewer busy cores, fewest first", default=(), one_or_many=True)

    def lanes(self, dtype: str) -> int:
        """Numbers in a register.

        >>> Instructions(bits=256).lanes("fp32"), Instructions().lanes("fp64")
        (8, 1)
        """
        return max(1, self.bits // BITS[dtype])

    def per_cycle(self, dtype: str) -> float:
        """FLOP per cycle and core.

        >>> Instructions(pipes=2, bits=512, fma=True).per_cycle("fp64")
        32.0
        """
        return float(self.lanes(dtype) * self.pipes * (2 if self.fma else 1))

    def clock_of(self, busy: int, otherwise: float) -> float:
        """Hertz with so many cores busy; `otherwise` where the class has no clock of its own.

        >>> Instructions(clock=3e9, boost=(Busy(1, 4e9), Busy(2, 3.5e9))).clock_of(2, 0)
        3500000000.0
        """
        return next((each.clock for each in self.boost if busy <= each.cores), self.clock or otherwise)


@dataclass(frozen=True, slots=True)
class Core:
    """What one core does in a cycle."""

    isa: Mapping[str, Instructions] = field(
        "classes of instructions: scalar, sse, avx, avx2, avx512, neon, sve, ...", default_factory=dict
    )
    ipc: float | None = field("instructions per cycle that one thread reaches", default=None, exclusive_minimum=0.0)
    mispredict: float = field("cycles lost by a branch guessed wrong", default=0.0, minimum=0.0)
    threads: int = field("hardware threads (SMT)", default=1, minimum=1)
    smt: float = field("instructions per cycle of all its threads over that of one", default=1.0, minimum=1.0)
    loads: float = field("loads started per cycle", default=2.0, exclusive_minimum=0.0)
    rmw: float = field("cycles of an atomic increment of a line the core has", default=20.0, minimum=0.0)
    store: float = field("cycles of a plain increment of a line the core has", default=5.0, minimum=0.0)

    def problems(self, cores: int, clock: float | None) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        for name, each in self.isa.items():
            if name not in ISAS:
                yield f"core.isa.{name}", f"unknown class of instructions '{name}'", did_you_mean(name, ISAS)
            if clock is None and each.clock is None:
                yield f"core.isa.{name}", f"{name} has no clock, nor has the cpu", "add `clock: 2.4 GHz`"
            for dtype in each.formats:
                if dtype not in BITS:
                    yield f"core.isa.{name}.formats", f"unknown number format '{dtype}'", did_you_mean(dtype, BITS)
            steps = [*each.boost, Busy(cores, each.clock or clock or 1.0)]
            for few, many in pairwise(steps):
                if many.cores < few.cores or (few.cores + 1) * many.clock < few.cores * few.clock:
                    at = f"core.isa.{name}.boost"
                    yield at, f"{few.cores + 1} busy cores would do less than {few.cores}", "list the fewest busy cores first"
        if self.smt > self.threads:
            yield "core.smt", f"{self.threads} threads cannot do {self.smt:g} times the work of one", None

    def widest(self, dtype: str) -> str:
        """The class with most FLOP per cycle in this format; "" if none computes in it."""
        able = [name for name, each in self.isa.items() if dtype in each.formats]
        return max(able, key=lambda name: (self.isa[name].per_cycle(dtype), name), default="")

    def rate(self, threads: int) -> float | None:
        """Instructions per cycle of `threads` threads of a core; None if unknown."""
        if self.ipc is None:
            return None
        return self.ipc * (
            1.0 if self.threads == 1 else 1.0 + (self.smt - 1.0) * (min(threads, self.threads) - 1) / (self.threads - 1)
        )

    def of_sockets(self, sockets: int) -> Core:
        """The same core where the clocks count the busy cores of so many sockets together."""
        if sockets == 1:
            return self
        classes = {
            name: replace(each, boost=tuple(Busy(step.cores * sockets, step.clock) for step in each.boost))
            for name, each in self.isa.items()
        }
        return replace(self, isa=classes)
