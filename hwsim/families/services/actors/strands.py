"""Requests and their branches, workers and lines, and locks: all that moves while services are played."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from hwsim.families.services.results.notes import ServiceNotes
from hwsim.families.services.workload.program import NONE, ServiceProgram

WAITS: Final = -1  # what a step returns that has to wait

Do: TypeAlias = "Callable[[Strand], int]"  # does a step; the number of the next one, or WAITS


class Strand:
    """A request on its way, or one of its branches.

    main: the request that it is a branch of, or itself. caller: who waits for the answer; attempt: number of its try.
    asking: number of the try whose answer it waits for itself.
    waits: fs that it waited, by what for. since, alone: when its work began, and what that takes alone.
    access: number of its access, of a work of several; base, reach: fs of it without its way, and of that; follows: fs of it
    if the arm is where the one before has ended, -1: it has a way. flow: its work's place at the station.
    held: locks. left: branches that have not come to their end. gone: its caller has given up.
    """

    caller: Strand | None = None
    attempt = asking = attempts = pc = left = since = alone = access = base = reach = follows = flow = 0
    choice = resource = NONE
    failed = gone = False
    waits: dict[int, int] | None = None
    held: list[int] | None = None
    slots: list[float] | None = None
    why = ""

    def __init__(self, service: Service, root: int, visit: int, began: int) -> None:
        self.service, self.root, self.visit, self.began = service, root, visit, began
        self.main = self


class Service:
    """A service: its steps made ready, its workers and its line."""

    __slots__ = ("do", "down", "free", "line", "notes", "number", "of", "parked", "resource")

    def __init__(self, of: ServiceProgram, number: int, resource: int, notes: ServiceNotes) -> None:
        self.of, self.number, self.resource, self.notes = of, number, resource, notes
        self.free = of.workers
        self.line: deque[Strand] = deque()
        self.do: list[Do] = []
        self.down = False
        self.parked: list[Strand] = []


class Lock:
    """A lock, its line, and those whom its holder has taken along."""

    __slots__ = ("along", "group", "line", "taken")

    def __init__(self, group: int) -> None:
        self.group, self.taken = group, False
        self.line: deque[tuple[Strand, int]] = deque()
        self.along: list[Strand] = []
