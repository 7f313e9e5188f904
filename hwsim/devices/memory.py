"""A separate memory reached over links: a CXL expander, a second NUMA domain, a scratch pool; or a DRAM on its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from hwsim.demand import Capacity, Cost, Demand, Requests, Term
from hwsim.devices.accesses import Accesses
from hwsim.devices.dram import Dram
from hwsim.devices.kind import Device, prefix_problems
from hwsim.devices.roofline import WORKLOAD, CannotCompute, latency_term, populated_memory, source_of
from hwsim.formats import precise
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Memory(Device):
    """A memory with one bandwidth for reads and writes together, stated or derived from its DRAM; a DRAM adds random access.

    Raises:
        ValueError: neither a bandwidth nor a DRAM is given.
    """

    kind: ClassVar[str] = "memory"
    bandwidth: BytesPerSecond = field("bandwidth of reads and writes together; with a `dram`, by default that of a stream over "
                                      "all channels", default=0.0, exclusive_minimum=0.0)  # fmt: skip
    size: Bytes | None = field("capacity; unlimited if omitted", default=None, exclusive_minimum=0.0)
    latency: Seconds = field("latency to the first byte of a copy", default=0.0)
    dram: Dram | None = field("DRAM of the memory; required for random access", default=None)
    channels: int | None = field("number of populated channels; overrides that of `dram`", default=None, minimum=1)

    def __post_init__(self) -> None:
        dram, bandwidth = populated_memory(self.dram, self.channels, self.bandwidth)
        object.__setattr__(self, "dram", dram)
        object.__setattr__(self, "bandwidth", bandwidth)

    def problems(self) -> Iterator[Problem]:
        yield from prefix_problems("dram", self.dram.problems() if self.dram else ())

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return (Capacity.of(name, "memory"),)

    def copy_bytes(self, name: str, size: float) -> tuple[str, float]:
        """Return the memory capacity and the memory time (s) that a transfer to or from it takes."""
        return f"{name}.memory", size / self.bandwidth

    def copy_latency(self) -> float:
        """Return the latency (s) to the first byte of a transfer that ends here."""
        return self.latency

    def access(self, name: str, accesses: Accesses) -> Cost:
        """Return the cost of accesses to the memory itself, without a cache.

        Sequential or strided: the latency of the first access, then the bytes at the DRAM's bandwidth; each stride transfers a
        whole burst. Random: as many accesses in flight as the queues hold, over `banks` banks of each channel, with a share
        `row_hit` of row hits. Dependent: one after another in each of `chains` chains.

        Raises:
            CannotCompute: the memory has no DRAM.
        """
        if self.dram is None:
            raise CannotCompute(f"{name} has no DRAM timings", "add `use: ddr4-3200`")
        dram = self.dram
        moved_bytes = math.ceil(accesses.size / dram.access) * dram.access  # of one access, in whole bursts
        if accesses.scattered:
            size = accesses.count * moved_bytes
            terms = [self._random(name, dram, accesses, size / dram.access)]
        else:
            size = accesses.count * min(moved_bytes, max(accesses.step, accesses.size))
            terms = self._sequential(name, dram, accesses, size)
        body_term = terms[-1]
        floor = 0.0
        if accesses.pattern == "dependent":
            terms.append(self._chain_term(name, dram, accesses))
            floor = terms[-1].seconds
        draws = ((f"{name}.memory", body_term.seconds),) if body_term.seconds > 0 else ()
        return Cost(
            Demand(
                latency=math.fsum(term.seconds for term in terms if term.kind == "latency") if accesses.count > 0 else 0.0,
                amounts=draws,
                floor=floor,
                share=body_term.seconds * self.bandwidth or 1.0,
            ),
            moved=tuple((capacity, size, "B") for capacity, _ in draws),
            why=tuple(terms),
            requests=_requests(name, dram, accesses),
        )

    def _sequential(self, name: str, dram: Dram, accesses: Accesses, size: float) -> list[Term]:
        share = dram.read_write_factor(1 - accesses.write)
        rate, source = self.bandwidth * share, source_of(self.sources, "bandwidth")
        source += f"; interleaved reads and writes reach {share:.3g} of it" if share < 1 else ""
        inputs = (("bytes", precise(size, "B"), WORKLOAD), ("bandwidth", precise(rate, "B/s"), source))
        source = self._source("controller + tRP + tRCD + tCL")
        latency = latency_term("first data", dram.latency() - dram.tBL, source, f"{name}.memory", name)
        return [latency, Term("memory", "bytes / bandwidth", inputs, size / rate, f"{name}.memory")]

    def _random(self, name: str, dram: Dram, accesses: Accesses, count: float) -> Term:
        banks, row_hit = accesses.banks, accesses.row_hit
        rate = dram.random_rate(banks, row_hit) * dram.read_write_factor(1 - accesses.write)
        scope = "all banks" if banks is None else f"{banks} of the banks of each channel"
        source = self._source(f"minimum of banks, activations and data bus, net of refresh; {scope}, {row_hit:.0%} row hits")
        inputs = (("accesses", precise(count, "1"), WORKLOAD), ("rate", precise(rate, "1/s"), source))
        return Term("random access", "accesses / rate", inputs, count / rate, f"{name}.memory")

    def _chain_term(self, name: str, dram: Dram, accesses: Accesses) -> Term:
        inputs = (
            ("accesses", precise(accesses.count, "1"), WORKLOAD),
            ("latency", precise(dram.latency(), "s"), self._source("controller + tRP + tRCD + tCL + burst")),
            ("chains", str(accesses.chains), WORKLOAD),
        )
        seconds = accesses.count * dram.latency() / accesses.chains
        return Term("chain", "accesses x latency / chains", inputs, seconds, f"{name}.memory")

    def _source(self, label: str) -> Origin:
        return f"{label}: " + source_of(self.sources, "dram.tRCD")


def _requests(name: str, dram: Dram, accesses: Accesses) -> Requests:
    return Requests(
        device=name,
        count=accesses.count,
        size=accesses.size,
        pattern=accesses.pattern,
        stride=accesses.step,
        span=accesses.working_set or 0.0,
        write_share=accesses.write,
        depth=accesses.chains if accesses.pattern == "dependent" else dram.queue * dram.channels,
        banks=accesses.banks,
        row_hit=accesses.row_hit,
    )
