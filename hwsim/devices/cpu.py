"""A CPU: the costs of the ops that it can run (see `hwsim.devices.cpu_keys` for what a part says of it)."""

from __future__ import annotations

from typing import ClassVar

from hwsim.demand import Cost, Unit
from hwsim.devices.accesses import Accesses
from hwsim.devices.cpu_keys import CpuKeys
from hwsim.devices.work import Work
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Cpu(CpuKeys):
    """Roofline CPU.  An op has all cores unless it says how many.

    Peaks are of the whole socket: as stated in `flop`, else cores x clock x `per_cycle`, else those of the widest
    instructions of `core`.  A type without a peak runs in the next wider one (see `roofline.WIDER`).
    """

    kind: ClassVar[str] = "cpu"

    def compute(self, name: str, work: Work) -> Cost:
        """One op on the cores it asks for.

        Raises:
            CannotCompute: no peak for the type or the instructions, or more cores than the socket has.
        """
        from hwsim.devices.cpu_kernels import measured_cost  # a machine without computation needs neither
        from hwsim.devices.cpu_work import work_cost

        used = self.used(name, work.cores)
        unit: Unit = "1" if work.mix == "random" else "FLOP"
        return measured_cost(self, name, work.call, work.flop, lambda: work_cost(self, name, work, used), unit)

    def access(self, name: str, accesses: Accesses) -> Cost:
        """Many small accesses, shared evenly by the cores they ask for.

        Raises:
            CannotCompute: more cores than the socket has.
        """
        from hwsim.devices.cpu_access import access_cost
        from hwsim.devices.cpu_kernels import measured_cost

        used = self.used(name, accesses.cores)
        return measured_cost(self, name, accesses.call, accesses.count, lambda: access_cost(self, name, accesses, used), "1")

    def increment(
        self, name: str, times: float, cores: int | None, *, shared: bool, atomic: bool = True, sockets: int = 1
    ) -> Cost:
        """`times` increments by each of these cores, of counters in one line (`shared`) or in a line each.

        Raises:
            CannotCompute: more cores than there are, or nothing is known of what an increment takes.
        """
        from hwsim.devices.cpu_access import increment_cost

        return increment_cost(self, name, times, self.used(name, cores), shared=shared, atomic=atomic, sockets=sockets)
