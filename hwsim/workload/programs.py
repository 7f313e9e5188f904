"""Which programs a file writes, and what each has of its own: a name, a thread, queues, a meaning for names."""

from __future__ import annotations

from collections.abc import Mapping

from hwsim.devices import Cpu
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine, UnknownName
from hwsim.ops import Placed, Scope
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, Value
from hwsim.spec.shelf import once
from hwsim.workload.file import Each, Rules

MOST_TIMES = 32  # of host threads whose costs a study keeps
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
        return (Program(name, "", Scope(machine, host=host_of(machine, "")), 0, 1),)
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
    names = {rank: chosen[rank] for rank in ranks}
    return tuple(
        Program(f"{prefix}{device}", device, scope_of(machine, device), rank, len(chosen)) for rank, device in names.items()
    )


def scope_of(machine: Machine, place: str) -> Scope:
    """The scope in which a program of a device or node looks names up."""
    if place in machine.nodes:
        return Scope(machine, place, "", host_of(machine, place))
    placed = machine.device(place)
    host = place if isinstance(placed.model, Cpu) else host_of(machine, placed.node)
    return Scope(machine, placed.node, place, host)


def host_of(machine: Machine, node: str) -> str:
    """The first CPU of the node, or of the smallest machine around it that has one; "" if there is none."""
    while True:
        if cpus := machine.devices_of("cpu", node):
            return cpus[0]
        if not node:
            return ""
        node = machine.nodes[node].node


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


def host_cost(program: Program, seconds: float, builder: GraphBuilder) -> int:
    """Index of the cost of `seconds` of a program's thread: a core of its host; -1 without a host or without time."""
    host = program.scope.host
    model = program.scope.machine.devices[host].model if host else None
    if not (isinstance(model, Cpu) and seconds > 0):
        return -1
    return builder.cost(once("busy", (model,), lambda: model.busy(host, seconds), also=(host, seconds), most=MOST_TIMES))
