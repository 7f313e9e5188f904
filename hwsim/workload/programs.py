"""Which programs a file writes, and what each has of its own: a name, a thread, queues, a meaning for names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hwsim.devices import Cpu
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine, UnknownName
from hwsim.ops import Placed, Scope
from hwsim.origins import Doubt
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, Value
from hwsim.spec.shelf import once
from hwsim.workload.file import Each, Rules

Doubting = Callable[[str], tuple[Doubt, ...]]
MOST_TIMES = 32  # of host threads whose costs a study keeps
NAMING: Final = frozenset({"among", "device", "each", "from", "to"})  # keys of statements that name devices
MAIN = "main"  # the program of a file that has only one


@dataclass(frozen=True, slots=True)
class Program:
    """One host thread.  own: what $self is called ("" outside `each`).  rank: its number among `ranks` of its `each`."""

    name: str
    own: str
    scope: Scope
    rank: int
    ranks: int

    @property
    def values(self) -> Mapping[str, Value]:
        """$self, $rank and $ranks."""
        return {"self": self.own, "rank": self.rank, "ranks": self.ranks}


def find_programs(
    name: str, tree: Tree, ranks_of: Each | None, machine: Machine, mistakes: Mistakes, only: int | None = None
) -> tuple[Program, ...]:
    """The program of that name, or one per device or node of `each` (or one of these)."""
    if ranks_of is None:
        return (Program(name, "", scope_among(machine, (tree,)), 0, 1),)
    at = tree.get("each")
    if not ranks_of.each:
        mistakes.add(at.place if at else tree.place, "`each` names nothing: no program would run", "such as each: gpu*")
        return ()
    try:
        chosen = machine.select(ranks_of.each)
    except UnknownName as error:
        mistakes.add(at.place if at else tree.place, error.message, error.hint)
        return ()
    prefix = "" if name == MAIN else f"{name}."
    ranks = range(len(chosen)) if only is None else range(only, min(only + 1, len(chosen)))
    return tuple(
        Program(f"{prefix}{chosen[rank]}", chosen[rank], scope_of(machine, chosen[rank]), rank, len(chosen)) for rank in ranks
    )


def scope_of(machine: Machine, place: str) -> Scope:
    """The scope in which a program of a device or node looks names up."""
    is_node = place in machine.nodes
    return Scope(machine, place if is_node else machine.device(place).node, "" if is_node else place, machine.host_of(place))


def scope_among(machine: Machine, trees: Sequence[Tree]) -> Scope:
    """The scope of a program of no device or node, with the host of the devices that its statements name.

    That is the host of the first of them, in the order of the text, in a machine inside the machine that has CPUs; if there is
    none, of the first outside of them. Devices in several such machines leave it open.
    """
    devices = named(machine, trees)
    of_node = {machine.node_of(device): device for device in reversed(devices)}
    first = {machine.home_of(device): device for device in of_node.values()}  # named in each machine that has CPUs
    all_cpus = set(machine.devices_of("cpu")) if len(first) > 1 else set[str]()
    cpus = {machine.node_of(device) for device in devices if device in all_cpus}
    outer = {home for home in first for each in first if each != home and each.startswith(f"{home}." if home else "")} - cpus
    hosts = [machine.host_of(device) for home, device in reversed(first.items()) if home not in outer]
    return Scope(machine, host=hosts[0] if hosts else machine.host_of(""), hosts=tuple(hosts) if len(hosts) > 1 else ())


def named(machine: Machine, trees: Sequence[Tree]) -> dict[str, None]:
    """The devices and nodes that statements, or all of a job, name, in the order of the text."""
    found: dict[str, None] = {}
    for tree in trees:
        for key, inner in sorted(tree.items()):
            names = inner.elements() if key in NAMING and not inner.is_mapping else ()
            for name in names:
                with suppress(UnknownName):
                    found.update(dict.fromkeys(machine.select(str(name.value))))
            found |= named(machine, () if names else (inner,))
        found |= named(machine, tree.elements() if tree.is_list else ())
    return found


def memory_of(machine: Machine, device: str) -> float | None:
    """Bytes that a device holds; None if its file does not say."""
    model = machine.device(device).model
    size: float | None = getattr(model, "size", None) or getattr(getattr(model, "memory", None), "size", None)
    return size


class Queues:
    """The queues of the programs, each made when first used; no two programs share one."""

    def __init__(self, builder: GraphBuilder, rules: Rules | None) -> None:
        self._builder = builder
        self._depth = rules.queue_depth if rules else None
        self._threads = rules is not None
        self._known: dict[tuple[str, str, str], int] = {}

    def host(self, program: Program) -> int:
        """The queue of a program's thread; -1 where issuing costs nothing."""
        return self._make(program.name, program.scope.host, "host", None) if self._threads else -1

    def of(self, program: Program, placed: Placed) -> int:
        """The queue an op of the program stands in."""
        return self._make(program.name, placed.device, placed.queue, self._depth)

    def _make(self, program: str, device: str, queue: str, depth: int | None) -> int:
        key = (program, device, queue)
        if key not in self._known:
            name = f"{device}.{queue}" if device else queue
            shown = name if program in {MAIN, device} else f"{program}:{name}"
            self._known[key] = self._builder.queue(shown, device, depth)
        return self._known[key]


def host_cost(program: Program, seconds: float, builder: GraphBuilder, doubts: Doubting | None = None) -> int:
    """Index of the cost of `seconds` of a program's thread: a core of its host; -1 without a host or without time.

    doubts: what makes the seconds unsure on a cpu that is this part of the library.
    """
    host = program.scope.thread if seconds > 0 else program.scope.host
    model = program.scope.machine.devices[host].model if host else None
    if not (isinstance(model, Cpu) and seconds > 0):
        return -1
    cost = once("busy", (model,), lambda: model.busy(host, seconds), also=(host, seconds), most=MOST_TIMES)
    if doubts is not None and (unsure := doubts(program.scope.machine.devices[host].part)):
        cost = replace(cost, why=tuple(replace(term, doubts=unsure) for term in cost.why))
    return builder.cost(cost)
