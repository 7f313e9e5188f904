"""Whether all copies of a network are like the first of them, so that it can stand for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hwsim.demand import Demand
from hwsim.devices import Cpu, Sockets
from hwsim.machine import Machine
from hwsim.workload.programs import Program
from hwsim.workload.training.network_kernels import Costs
from hwsim.workload.training.network_plan import NetworkPlan


def difference(plan: NetworkPlan, programs: Sequence[Program], costs: Sequence[Costs], machine: Machine) -> str:
    """What tells copies apart before any of them is written out, in words; "" if nothing does."""
    if plan.asynchronous:
        return "asynchronous copies go at a pace of their own"
    if len(set(plan.batches)) > 1 or any(each is not costs[0] for each in costs):
        return "the copies have other batches or other GPUs than the first"
    if plan.pp > 1 or plan.tp > 1:
        return "a copy is split over several GPUs, which may share links with those of other copies"
    if plan.by == "parameter-server":
        return "servers of parameters work beside some of the copies"
    return _hosts(plan, Counter(program.scope.host for program in programs), machine)


def _hosts(plan: NetworkPlan, gpus: Counter[str], machine: Machine) -> str:
    """Whether the hosts serve their GPUs alike, and none is short of cores for them."""
    if len(set(gpus.values())) > 1:
        return "the hosts do not all have as many of the GPUs"
    models = [machine.device(name).model if name else None for name in gpus]
    if any(each != models[0] for each in models):
        return "the hosts are not all alike"
    each = max(gpus.values(), default=0)
    if plan.one_thread and each > 1:
        return "one thread issues the kernels of several GPUs"
    threads = each * (2 if plan.software.number > 0 else 1)
    if isinstance(models[0], Cpu | Sockets) and threads > models[0].cores:
        return "the threads of several copies share cores"
    return ""


def exchanged(devices: Sequence[str], demands: Iterable[Demand]) -> str:
    """What an exchange among all copies asks of some of their GPUs alone, in words; "" if of all of them the same."""
    for demand in demands:
        asked = {name: (amount, 0.0) for name, amount in demand.amounts} | {name: (0.0, part) for name, part in demand.holds}
        for device in devices:
            for what in ("compute", "memory"):
                if asked.get(f"{device}.{what}") != asked.get(f"{devices[0]}.{what}"):
                    return f"an exchange asks more or less of {device} than of {devices[0]}"
    return ""
