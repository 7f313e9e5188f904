"""What a reader of services has to know: requests that never come, answers that are never in time, accesses without a spread."""

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
    told = {
        (program.services[served.service].name, served.cost.demand.crowd)
        for served in program.served
        if served.cost is not None and served.cost.demand.crowd is not None and _is_arm(served.cost.demand.crowd.each)
    }
    for service_name, crowd in sorted(told, key=lambda each: (each[0], each[1].capacity)):
        disk, mean = crowd.capacity.rpartition(".")[0], format_quantity(crowd.each(1)[0], "s")
        text = f"an access to {disk} takes its mean, {mean}, each time: alone some take nearly twice as long"
        yield Warning("accesses-in-the-mean", f"{service_name}: {text}, so that percentiles are too short")


def _is_arm(each: Each) -> bool:
    """Whether accesses wait for an arm and a turn of a hard disk, or of one among several."""
    return _is_arm(each.member) if isinstance(each, Members) else isinstance(each, Arm)
