"""State of the Python simulator of services: requests and branches, services with workers and queues, and locks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from hwsim.families.services.results.statistics import ServiceNotes
from hwsim.families.services.workload.program import NONE, ServiceProgram

WAITS: Final = -1  # result of a step that waits

Do: TypeAlias = "Callable[[Strand], int]"  # executes a step; returns the next one or WAITS


class Strand:
    """A request in flight, or one of its concurrent branches.

    Attributes:
        root: index of the request from outside that caused it.
        visit: hash that selects its random numbers.
        began: time at which it arrived (fs).
        main: request that it is a branch of, or itself.
        caller: request that waits for the response; of a branch, the one that forked it.
        attempt: number of the attempt that it serves.
        attempts: attempts of the current call so far.
        asking: number of the attempt that it waits for; 0: none.
        pc: index of the next step.
        left: number of branches that have not ended.
        since: time at which its work or its wait began (fs).
        alone: time of its work without contention (fs).
        access: index of its access, for work of several accesses.
        base: time of the access without positioning (fs).
        reach: positioning time of the access (fs).
        follows: time of the access directly after the previous one (fs); -1: it is positioned.
        flow: index of its work at the station.
        choice: index of its named branch.
        resource: cause of its next wait.
        waits: waits by cause (fs).
        held: locks that it holds.
        slots: kept values.
        gone: whether its caller has timed out.
        failed: whether it failed, for the reason `why`.
    """

    caller: Strand | None = None
    attempt = asking = attempts = pc = left = since = alone = access = base = reach = follows = flow = 0
    choice = resource = NONE
    failed = gone = False
    waits: dict[int, int] | None = None
    held: list[int] | None = None
    slots: list[float] | None = None
    why = ""

    def __init__(self, service: ServiceState, root: int, visit: int, began: int) -> None:
        self.service, self.root, self.visit, self.began = service, root, visit, began
        self.main = self


class ServiceState:
    """The state of a service: functions of its steps, free workers, and the queue."""

    __slots__ = ("do", "down", "free", "line", "notes", "number", "of", "parked", "resource")

    def __init__(self, of: ServiceProgram, number: int, resource: int, notes: ServiceNotes) -> None:
        self.of, self.number, self.resource, self.notes = of, number, resource, notes
        self.free = of.workers
        self.line: deque[Strand] = deque()
        self.do: list[Do] = []
        self.down = False
        self.parked: list[Strand] = []


class LockState:
    """The state of a lock: its queue, and the requests that its holder serves with its own by group commit (`along`)."""

    __slots__ = ("along", "group", "line", "taken")

    def __init__(self, group: int) -> None:
        self.group, self.taken = group, False
        self.line: deque[tuple[Strand, int]] = deque()
        self.along: list[Strand] = []
