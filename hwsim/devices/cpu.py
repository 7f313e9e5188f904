"""A CPU socket, and several identical sockets addressed as one (see `hwsim.devices.cpu_keys` for the keys).

On a node with two sockets, `cpu` without a number refers to both.
Work and its memory traffic are spread evenly over the sockets, each with its data in local memory.
Traffic to the memory of another socket (`remote`) has an extra latency `numa.remote_latency` and shares
`numa.remote_bandwidth`; a line that cores of both sockets write crosses between them (`coherence.sockets`).

Error: docs/validation/components.md (BabelStream and core-to-core rows of dual-socket servers).
Range: remote traffic is limited to the rate of the link between the sockets, but does not compete with other transfers on that
link: a copy from socket to socket uses the link, an op with `remote` does not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hwsim.demand import Capacity, Cost, Unit
from hwsim.devices.accesses import Accesses
from hwsim.devices.cpu_keys import CpuKeys
from hwsim.devices.work import Work
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Cpu(CpuKeys):
    """A roofline model of a CPU socket; an op uses all cores unless it states their number."""

    kind: ClassVar[str] = "cpu"

    def compute(self, name: str, work: Work) -> Cost:
        """Return the cost of one op on its number of cores.

        Raises:
            CannotCompute: there is no peak for the number format or the instructions, or the op has more cores than the socket.
        """
        from hwsim.devices.cpu_kernels import measured_cost  # a machine without compute ops imports neither
        from hwsim.devices.cpu_work import work_cost

        used = self.used(name, work.cores)
        unit: Unit = "1" if work.mix == "random" else "FLOP"
        return measured_cost(self, name, work.call, work.flop, lambda: work_cost(self, name, work, used), unit)

    def access(self, name: str, accesses: Accesses) -> Cost:
        """Return the cost of many small accesses, divided evenly among the cores of the op.

        Raises:
            CannotCompute: the op has more cores than the socket.
        """
        from hwsim.devices.cpu_access import access_cost
        from hwsim.devices.cpu_kernels import measured_cost

        used = self.used(name, accesses.cores)
        return measured_cost(self, name, accesses.call, accesses.count, lambda: access_cost(self, name, accesses, used), "1")

    def increment(
        self, name: str, times: float, cores: int | None, *, shared: bool, atomic: bool = True, sockets: int = 1
    ) -> Cost:
        """Return the cost of `times` increments by each core, of counters in one line (`shared`) or in one line each.

        Raises:
            CannotCompute: there are more cores than in the socket, or the time of an increment is unknown.
        """
        from hwsim.devices.cpu_access import increment_cost

        return increment_cost(self, name, times, self.used(name, cores), shared=shared, atomic=atomic, sockets=sockets)


@dataclass(frozen=True, slots=True)
class Sockets:
    """Several identical sockets as one CPU.

    Args:
        model: model of each socket.
        names: names of the sockets.
    """

    kind: ClassVar[str] = "cpu"
    model: Cpu
    names: tuple[str, ...]

    @property
    def cores(self) -> int:
        return self.model.cores * len(self.names)

    def capacities(self, name: str) -> tuple[Capacity, ...]:  # noqa: ARG002 (as Cpu)
        """Return the capacities of all sockets."""
        return tuple(capacity for socket in self.names for capacity in self.model.capacities(socket))

    def compute(self, name: str, work: Work) -> Cost:
        """Return the cost as `Cpu.compute` does, for one CPU with the cores and the memory bandwidth of all sockets."""
        return self._spread(name, self._whole().compute(name, work))

    def access(self, name: str, accesses: Accesses) -> Cost:
        """Return the cost as `Cpu.access` does, for one CPU with the cores and the memory bandwidth of all sockets."""
        cost = self._spread(name, self._whole().access(name, accesses))
        return replace(cost, requests=None)  # no single device serves them

    def increment(self, name: str, times: float, cores: int | None, *, shared: bool, atomic: bool = True) -> Cost:
        """Return the cost as `Cpu.increment` does; cores fill one socket after another, and the line is in the first socket."""
        whole = self._whole()
        return self._spread(name, whole.increment(name, times, cores, shared=shared, atomic=atomic, sockets=len(self.names)))

    def busy(self, name: str, seconds: float) -> Cost:
        """Return the cost of a known time on one core of any socket."""
        return self._spread(name, self._whole().busy(name, seconds))

    def _whole(self) -> Cpu:
        n = len(self.names)
        memory_of_one = self.model.memory
        dram = replace(memory_of_one.dram, channels=memory_of_one.dram.channels * n) if memory_of_one.dram else None
        memory = replace(
            memory_of_one, bandwidth=memory_of_one.bandwidth * n, dram=dram, channels=None, max_channels=None, dimms=None
        )
        flop = {dtype: peak * n for dtype, peak in self.model.flop.items()}
        sources = dict(self.model.sources)
        for key in ("cores", "memory.bandwidth", *(f"flop.{dtype}" for dtype in flop)):
            if key in sources:
                sources[key] = f"{n} sockets together; " + sources[key]
        return self.model.like(cores=self.cores, flop=flop, memory=memory, sources=sources, sockets=n)

    def _spread(self, name: str, cost: Cost) -> Cost:
        """Divide core time among the sockets; each socket has the same memory time, and the line is in the first socket."""
        n, names = len(self.names), self.names
        parts = {  # capacity: (name on a socket, divisor of the amount, sockets)
            f"{name}.cores": (".cores", n, names),
            f"{name}.memory": (".memory", 1, names),
            f"{name}.line": (".line", 1, names[:1]),
        }
        amounts = [
            (socket + parts[capacity][0], amount / parts[capacity][1])
            for capacity, amount in cost.demand.amounts
            for socket in parts[capacity][2]
        ]
        moved = [
            (socket + parts[capacity][0], work / len(parts[capacity][2]), unit)
            for capacity, work, unit in cost.moved
            for socket in parts[capacity][2]
        ]
        why = tuple(term.on(term.capacity.replace(name, names[0], 1), names[0]) for term in cost.why)
        clocks = tuple((f"{socket}.cores", part) for _, part in cost.demand.clocks for socket in names)
        demand = replace(cost.demand, amounts=tuple(sorted(amounts)), clocks=clocks)
        return replace(cost, demand=demand, moved=tuple(sorted(moved)), why=why)
