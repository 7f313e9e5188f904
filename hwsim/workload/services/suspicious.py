"""Warnings of services: requests that never come, answers that are never in time, accesses that all take their mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwsim.demand import Each
from hwsim.devices.crowding import Arm, Members
from hwsim.formats import format_quantity
from hwsim.spec import Warning
from hwsim.ticks import FEMTO
from hwsim.workload.services.program import Ask, Program


def suspicions(program: Program, alone: Mapping[str, float], entered: Mapping[str, int]) -> Iterator[Warning]:
    """Warnings of services that were played.

    Args:
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
                "timeout-too-short", f"{service.name} gives {name} up after {given}; alone it takes {takes} in the mean"
            )
    arms: dict[tuple[str, str], Each] = {}  # by service and disk
    for served in program.served:
        crowd = None if served.cost is None else served.cost.demand.crowd
        if crowd is not None and _is_arm(crowd.each):
            arms.setdefault((program.services[served.service].name, crowd.capacity.rpartition(".")[0]), crowd.each)
    for (name, disk), access in sorted(arms.items(), key=lambda row: row[0]):
        mean = format_quantity(access(1)[0], "s")
        text = f"an access to {disk} takes its mean, {mean}, each time: alone some take nearly twice as long"
        yield Warning("accesses-in-the-mean", f"{name}: {text}, so that percentiles are too short")


def _is_arm(each: Each) -> bool:
    """Whether accesses wait for an arm and a turn of a hard disk, or of one among several."""
    return _is_arm(each.member) if isinstance(each, Members) else isinstance(each, Arm)
