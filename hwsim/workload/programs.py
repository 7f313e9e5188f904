"""Programs of a file, each with a name, a host thread, queues and a scope of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from hwsim.devices import Cpu, Gpu, Sockets
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine, UnknownName
from hwsim.ops import LoweredOp, Scope
from hwsim.origins import UncertaintySource
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, Value
from hwsim.spec.memo import memoize_result
from hwsim.workload.file import RankProgram, Rules, Workers

Doubting = Callable[[str], tuple[UncertaintySource, ...]]
MOST_TIMES = 32  # memoized costs of host threads per study
NAMING: Final = frozenset({"among", "device", "each", "from", "to"})  # keys of statements that name devices
MAIN = "main"  # name of the only program of a file


@dataclass(frozen=True, slots=True)
class Program:
    """A program: the sequence of statements of one host thread.

    Args:
        own: value of $self; "" outside `each`.
        rank: number of the program among the `ranks` programs of its `each`.
    """

    name: str
    own: str
    scope: Scope
    rank: int
    ranks: int

    @property
    def values(self) -> Mapping[str, Value]:
        """Values of $self, $rank and $ranks."""
        return {"self": self.own, "rank": self.rank, "ranks": self.ranks}


def find_programs(
    name: str, tree: Tree, ranks_of: RankProgram | None, machine: Machine, mistakes: Mistakes, only: int | None = None
) -> tuple[Program, ...]:
    """Return the program of a name, or one per device or node of `each`; with `only`, the program of this rank."""
    if ranks_of is None:
        return (Program(name, "", scope_among(machine, (tree,)), 0, 1),)
    place = (tree.get("each") or tree).place
    if not ranks_of.each:
        mistakes.add(place, "`each` names no device, so no program would run", "each: gpu*")
        return ()
    try:
        chosen = machine.select(ranks_of.each)
    except UnknownName as error:
        mistakes.add(place, error.message, error.hint)
        return ()
    prefix = "" if name == MAIN else f"{name}."
    ranks = range(len(chosen)) if only is None else range(only, min(only + 1, len(chosen)))
    return tuple(
        Program(f"{prefix}{chosen[rank]}", chosen[rank], scope_of(machine, chosen[rank]), rank, len(chosen)) for rank in ranks
    )


def scope_of(machine: Machine, place: str) -> Scope:
    """Return the scope in which the program of a device or node looks up names."""
    is_node = place in machine.nodes
    return Scope(machine, place if is_node else machine.device(place).node, "" if is_node else place, machine.host_of(place))


def scope_among(machine: Machine, trees: Sequence[Tree]) -> Scope:
    """Return the scope of a program without a device or node; its host follows from the devices that its statements name.

    The host belongs to the first named device, in order of the text, that is in a sub-machine with CPUs, or else to the first
    named device. Devices in several sub-machines with CPUs leave the host open.
    """
    devices = named_devices(machine, trees)
    of_node = {machine.node_of(device): device for device in reversed(devices)}
    first = {machine.home_of(device): device for device in of_node.values()}  # first named device of each sub-machine with CPUs
    all_cpus = set(machine.devices_of("cpu")) if len(first) > 1 else set[str]()
    cpus = {machine.node_of(device) for device in devices if device in all_cpus}
    outer = {home for home in first for sub in first if sub != home and sub.startswith(f"{home}." if home else "")} - cpus
    hosts = [machine.host_of(device) for home, device in reversed(first.items()) if home not in outer]
    return Scope(machine, host=hosts[0] if hosts else machine.host_of(""), hosts=tuple(hosts) if len(hosts) > 1 else ())


def named_devices(machine: Machine, trees: Sequence[Tree]) -> dict[str, None]:
    """Return the devices and nodes that the statements name, in order of the text."""
    found: dict[str, None] = {}
    for tree in trees:
        for key, inner in sorted(tree.items()):
            names = inner.elements() if key in NAMING and not inner.is_mapping else ()
            for name in names:
                with suppress(UnknownName):
                    found.update(dict.fromkeys(machine.select(str(name.value))))
            found |= named_devices(machine, () if names else (inner,))
        found |= named_devices(machine, tree.elements() if tree.is_list else ())
    return found


def memory_of(machine: Machine, device: str) -> float | None:
    """Return the memory size of a device (bytes); None if unknown."""
    model = machine.device(device).model
    size: float | None = getattr(model, "size", None) or getattr(getattr(model, "memory", None), "size", None)
    return size


class Queues:
    """A table of the queues of the programs; queues are created on first use and never shared by programs."""

    def __init__(self, builder: GraphBuilder, rules: Rules | None) -> None:
        self._builder = builder
        self._depth = rules.queue_depth if rules else None
        self._threads = rules is not None
        self._workers = rules.workers if rules else Workers()
        self._known: dict[tuple[str, str, str], int] = {}
        self._pools: dict[tuple[str, str, str], int] = {}

    def host(self, program: Program) -> int:
        """Return the queue of a program's thread; -1 if issuing takes no time."""
        return self._make(program.name, program.scope.host, "host", None) if self._threads else -1

    def of(self, program: Program, placed: LoweredOp) -> int:
        """Return the queue of an op of the program."""
        return self._make(program.name, placed.device, placed.queue, self._depth)

    def pool(self, program: Program, placed: LoweredOp, kind: str) -> int:
        """Return the pool of workers of an op that names no queue; -1 if its device runs ops in order of issue.

        Args:
            kind: key of the op in the file.
        """
        model = program.scope.machine.device(placed.device).model
        count = self._workers.copy if kind == "copy" else None
        if placed.queue == "compute" and isinstance(model, Cpu | Sockets):
            count = model.cores if self._workers.cpu == "cores" else self._workers.cpu
        elif placed.queue == "compute" and isinstance(model, Gpu):
            count = self._workers.gpu
        if count is None:
            return -1
        key = (program.name, placed.device, placed.queue)
        if key not in self._pools:
            name = _shown(program.name, placed.device, "" if placed.queue == "compute" else placed.queue)
            self._pools[key] = self._builder.pool(f"workers of {name}", count, backend=True)
        return self._pools[key]

    def _make(self, program: str, device: str, queue: str, depth: int | None) -> int:
        key = (program, device, queue)
        if key not in self._known:
            self._known[key] = self._builder.queue(_shown(*key), device, depth)
        return self._known[key]


def _shown(program: str, device: str, queue: str) -> str:
    """The name of a queue in the results; of a device without a queue."""
    name = f"{device}.{queue}" if device and queue else device or queue
    return name if program in {MAIN, device} else f"{program}:{name}"


def host_cost(program: Program, seconds: float, builder: GraphBuilder, doubts: Doubting | None = None) -> int:
    """Return the index of the cost of a thread's time: one core of its host; -1 without a host or without time.

    Args:
        seconds: time of the thread (s).
        doubts: sources of uncertainty of the time, by the library name of the CPU.
    """
    host = program.scope.thread if seconds > 0 else program.scope.host
    model = program.scope.machine.devices[host].model if host else None
    if not (isinstance(model, Cpu) and seconds > 0):
        return -1
    cost = memoize_result("busy", (model,), lambda: model.busy(host, seconds), also=(host, seconds), most=MOST_TIMES)
    if doubts is not None and (unsure := doubts(program.scope.machine.devices[host].part)):
        cost = replace(cost, why=tuple(replace(term, doubts=unsure) for term in cost.why))
    return builder.cost(cost)
