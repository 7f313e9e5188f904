"""Warnings of services: requests that never come, answers that are never in time, accesses that all take their mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwsim.demand import Capacity, Each
from hwsim.devices.crowding import Members
from hwsim.families.services.workload.arms import is_arm
from hwsim.families.services.workload.program import Ask, Program
from hwsim.formats import format_quantity
from hwsim.spec import Warning
from hwsim.ticks import FEMTO


def suspicions(
    program: Program, capacities: Mapping[str, Capacity], alone: Mapping[str, float], entered: Mapping[str, int]
) -> Iterator[Warning]:
    """Warnings of services that were played.

    Args:
        capacities: those of the machine, by name.
        alone: seconds that a request of each service takes if it never waits.
        entered: requests that came to each.
    """
    targets = {step.service for service in program.services for step in service.steps if isinstance(step, Ask)}
    for number, service in enumerate(program.services):
        if service.arrivals is None and number not in targets:
            yield Warning("never-asked", f"nothing asks the service '{service.name}', and it has no `arrivals`")
        elif service.arrivals is not None and not entered[service.name]:
            yield Warning("never-asked", f"no request came to '{service.name}' before the end of the run")
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
                "timeout-too-short", f"{service.name} gives up on {name} after {given}; unloaded it takes {takes} on average"
            )
    arms: dict[tuple[str, str], tuple[Each, str]] = {}  # by service and disk
    for number, served in enumerate(program.served):
        crowd = None if served.cost is None else served.cost.demand.crowd
        if crowd is not None and is_arm(crowd.each) and program.accesses_of(number) is None:
            issued = program.stations[served.station].issued
            disk = capacities[crowd.capacity].device
            why = "jobs draw from it, too" if issued else "not every statement there asks for one after another"
            arms.setdefault((program.services[served.service].name, disk), (crowd.each, why))
    for (name, disk), (access, why) in sorted(arms.items(), key=lambda row: row[0]):
        single = access.member if isinstance(access, Members) else access
        mean = format_quantity(single(1)[0], "s")
        text = f"an access to {disk} takes its mean, {mean}, each time, as {why}: percentiles are too short"
        yield Warning("accesses-in-the-mean", f"{name}: {text}")
