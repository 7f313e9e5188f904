"""Services for tests, on an ideal machine with round numbers, and the rules of lines written out once more as SimPy processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from typing import Any, Final

import simpy

import hwsim
from hwsim.families.services.actors.simulation import ServiceSimulation
from hwsim.families.services.actors.stations import NEVER
from hwsim.families.services.results.responses import ServiceResponses
from hwsim.families.services.workload.program import ServicesProgram
from hwsim.prepare import LoweredWorkload, prepare

MACHINE: Final[dict[str, Any]] = {
    "hwsim": "machine/1",
    "class": "ideal",
    "parts": {
        "cpu": {"kind": "cpu", "cores": 4, "memory": {"bandwidth": "100 GB/s"}, "flop": {"fp32": "500 GFLOP/s"}},
        "one": {"kind": "cpu", "cores": 1, "memory": {"bandwidth": "100 GB/s"}, "flop": {"fp32": "500 GFLOP/s"}},
        "client": {"kind": "cpu", "cores": 4, "memory": {"bandwidth": "100 GB/s"}, "flop": {"fp32": "500 GFLOP/s"}},
        "disk": {"kind": "disk", "read": "1 GB/s"},
    },
    "links": [{"name": "wire", "between": ["cpu", "client"], "kind": "direct", "bandwidth": "1 GB/s"}],
}
FIFO: Final = {"machine.cpu.serves": "fifo", "machine.one.serves": "fifo"}


def workload(services: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A workload file."""
    return {"hwsim": "workload/1", "services": services, **({"requests": 2000} if "for" not in keys else {}), **keys}


def busy(time: Any, device: str = "cpu", name: str = "") -> dict[str, Any]:
    return {"busy": {"device": device, "time": time, **({"name": name} if name else {})}}


def program_of(lowered: LoweredWorkload) -> ServicesProgram:
    """The services of a workload on a machine."""
    program = lowered.doors["services"]
    assert isinstance(program, ServicesProgram)
    return program


def run(services: dict[str, Any], set: dict[str, Any] | None = None, **keys: Any) -> dict[str, ServiceResponses]:  # noqa: A002
    """The answers of each service."""
    found = hwsim.simulate(MACHINE, workload(services, **keys), set=set, expect=False).services
    assert found is not None
    return {answer.name: answer for answer in found.answers}


def played(services: dict[str, Any], set: dict[str, Any] | None = None, **keys: Any) -> ServiceSimulation:  # noqa: A002
    """The run itself, with its notes."""
    program = program_of(prepare(MACHINE, workload(services, **keys), set=set))
    play = ServiceSimulation(program)
    play.until(NEVER)
    for notes in play.notes:
        notes.flush()
    return play


class Pool:
    """So many at once, the others in line: of workers, or (one) a lock."""

    def __init__(self, env: simpy.Environment, many: int) -> None:
        self.env, self.free, self.line = env, many, deque[simpy.Event]()

    def take(self) -> simpy.Event:
        turn = self.env.event()
        if self.free:
            self.free -= 1
            turn.succeed()
        else:
            self.line.append(turn)
        return turn

    def give(self) -> None:
        if self.line:
            self.line.popleft().succeed()
        else:
            self.free += 1


def twin(begin: Callable[[simpy.Environment, int], Generator[simpy.Event, Any, None]], instants: list[int]) -> list[int]:
    """fs from the arrival to the end of each request, by processes on SimPy's clock."""
    env = simpy.Environment(initial_time=0)
    took = [0] * len(instants)

    def one(number: int) -> Generator[simpy.Event, Any, None]:
        yield from begin(env, number)
        took[number] = int(env.now) - instants[number]

    def arrivals() -> Generator[simpy.Event, Any, None]:
        for number, instant in enumerate(instants):
            yield env.timeout(instant - env.now)
            env.process(one(number))

    env.process(arrivals())
    env.run()
    return took
