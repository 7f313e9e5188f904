"""Warnings of services: services never called, timeouts below the service time, disk accesses without random times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwsim.demand import AccessTime, Capacity
from hwsim.devices.contention import ArrayMembers
from hwsim.families.services.workload.arms import is_arm
from hwsim.families.services.workload.program import Ask, ServicesProgram
from hwsim.formats import format_quantity
from hwsim.spec import Warning
from hwsim.ticks import FEMTO


def suspicions(
    program: ServicesProgram, capacities: Mapping[str, Capacity], alone: Mapping[str, float], entered: Mapping[str, int]
) -> Iterator[Warning]:
    """Yield warnings of simulated services.

    Args:
        capacities: capacities of the machine, by name.
        alone: service time of a request of each service without waiting (s).
        entered: requests that arrived at each service.
    """
    targets = {step.service for service in program.services for step in service.steps if isinstance(step, Ask)}
    for number, service in enumerate(program.services):
        if service.arrivals is None and number not in targets:
            yield Warning("no-requests", f"no service calls '{service.name}', and it has no `arrivals`; it has no effect")
        elif service.arrivals is not None and not entered[service.name]:
            yield Warning("no-requests", f"no request arrived at '{service.name}' before the end of the run")
    for service in program.services:
        late = {
            (step.service, step.timeout)
            for step in service.steps
            if isinstance(step, Ask) and 0 <= step.timeout < alone[program.services[step.service].name] * FEMTO
        }
        for number, timeout in sorted(late):
            name = program.services[number].name
            takes, given = format_quantity(alone[name], "s"), format_quantity(timeout / FEMTO, "s")
            yield Warning(
                "timeout-too-short",
                f"{service.name} times out calls of {name} after {given}, but {name} takes {takes} on average without load",
            )
    arms: dict[tuple[str, str], tuple[AccessTime, str]] = {}  # by service and disk
    for number, served in enumerate(program.served):
        crowd = None if served.cost is None else served.cost.demand.crowd
        if crowd is not None and is_arm(crowd.each) and program.accesses_of(number) is None:
            issued = program.stations[served.station].issued
            disk = capacities[crowd.capacity].device
            why = "jobs use it as well" if issued else "not all statements there make one access at a time"
            arms.setdefault((program.services[served.service].name, disk), (crowd.each, why))
    for (name, disk), (access, why) in sorted(arms.items(), key=lambda row: row[0]):
        single = access.member if isinstance(access, ArrayMembers) else access
        mean = format_quantity(single(1)[0], "s")
        text = f"each access to {disk} takes its average time ({mean}), because {why}; percentiles are too low"
        yield Warning("mean-access-time", f"{name}: {text}")
