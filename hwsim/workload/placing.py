"""An op of a file on its device, with indices into the tables of the graph, as its program's runtime treats it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from math import ceil, inf
from typing import Final

from hwsim import ticks
from hwsim.devices import CannotCompute, Start
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import NoRoute, UnknownName
from hwsim.ops import CannotPlace, ComputeOp, FetchOp, Home, Op, Placed, Scope, stated
from hwsim.ops.doubted import doubted
from hwsim.records import dataclass
from hwsim.spec import Mistakes
from hwsim.workload.file import Rules
from hwsim.workload.programs import Program, Queues
from hwsim.workload.statements import PlacedOp

_ON_A_CPU: Final = "name a gpu as `device`, or take a runtime that compiles for a cpu: mxnet-hybrid, torchscript, tf-function"


@dataclass(slots=True)
class Placing:
    """Context for placing the ops of one group, and where their values lie.

    homes: where the values of each program lie, by program.  scopes: what names mean to a program whose kernels are started so.
    missed: values fetched before anything wrote them.
    never: repeats around the op that run 0 times: the machine need not have what it names.
    """

    rules: Rules | None
    builder: GraphBuilder
    queues: Queues
    mistakes: Mistakes
    homes: dict[str, dict[str, Home]] = field(default_factory=dict)
    scopes: dict[tuple[str, Start], Scope] = field(default_factory=dict)
    missed: set[tuple[str, str]] = field(default_factory=set)
    never: int = 0

    @property
    def compiles(self) -> bool:
        """Whether the runtime compiles the bodies of `call`."""
        return self.rules is not None and self.rules.compiles

    @property
    def shares(self) -> bool:
        """Whether the runtime's arrays in the host's memory are numpy's own."""
        return self.rules is not None and self.rules.converts == "share"

    def looks_back(self) -> bool:
        """Whether a value is fetched in the text before it is said where it lies: in the iteration before."""
        return any(value in self.homes[program] for program, value in sorted(self.missed))

    def place(self, op: Op, kind: str, program: Program, call: int, layer: bool = False) -> PlacedOp | None:
        """The op of one program; None once what is wrong is noted.

        call: number of the compiled body it stands in, or -1.  layer: it stands in a body that is not compiled.
        """
        homes = self.homes.setdefault(program.name, {})
        if isinstance(op, FetchOp):
            self.missed |= {(program.name, value) for value in op.reads if value not in homes}
        try:
            starts = self.rules.starts if self.rules is not None and call >= 0 else program.scope.starts
            placed = doubted(op, self._scope(program, homes, starts))
            refuse_endless(placed)
            if starts == "graph" and isinstance(op, ComputeOp) and program.scope.kind(placed.device) == "cpu":
                raise CannotPlace(
                    f"'{placed.device}' is a cpu, and the runtime starts what it compiles as a graph of a gpu", _ON_A_CPU
                )
            femtoseconds = ticks.femtoseconds(placed.time + (self.rules.per_op if self.rules and call >= 0 else 0.0))
        except (CannotCompute, CannotPlace, NoRoute, UnknownName, ticks.TooLong) as error:
            if not self.never:
                self.mistakes.add(op.place, error.message, error.hint)
            return None
        sizes = {}
        if op.writes or op.updates:
            sizes = {**dict.fromkeys(op.writes, placed.output), **stated(op.writes), **stated(op.updates)}
        for name in (*op.writes, *op.updates):
            old = homes.get(name) if name in op.updates else None
            homes[name] = Home(old.memory if old else placed.memory, sizes.get(name) or (old.bytes if old else 0.0))
        label, name = self.builder.label, op.name or kind
        threaded = self.rules is not None
        fetched = isinstance(op, FetchOp)
        block = (op.block or self._blocks(placed, program)) and not fetched
        return PlacedOp(
            name=name,
            label=label(name, kind, placed.device, program.name),
            dispatch=label(name, "dispatch", program.scope.host, program.name)
            if threaded and not fetched and (call < 0 or self.issues)
            else -1,
            insert=label(name, "insert", "", program.name) if threaded else -1,
            back=self.back_label(name, program) if block or fetched else -1,
            queue=self.queues.of(program, placed) if placed.queue else -1,
            cost=self.builder.cost(op.weighted(placed.cost)),
            time=femtoseconds,
            pieces=placed.pieces,
            reads=op.reads,
            writes=tuple(op.writes),
            updates=tuple(op.updates),
            after=op.after,
            block=block,
            device=placed.device,
            memory=placed.memory,
            sizes=tuple((value, ceil(size)) for value, size in sizes.items() if size > 0 and placed.memory),
            call=call,
            layer=layer,
            pointwise=placed.pointwise,
            sent=placed.memory if op.kind == "send" else "",
        )

    def _scope(self, program: Program, homes: dict[str, Home], starts: Start) -> Scope:
        """The meaning of names to a program whose kernels are started so."""
        found = self.scopes.get((program.name, starts))
        if found is None:
            found = self.scopes[program.name, starts] = replace(program.scope, values=homes, starts=starts, shares=self.shares)
        return found

    def back_label(self, name: str, program: Program) -> int:
        """Label of a program's return from waiting for `name`."""
        kind, device = ("return", program.scope.host) if self.rules else ("wait", "")
        return self.builder.label(name, kind, device, program.name)

    def back_labels(self, name: str, programs: Sequence[Program]) -> tuple[int, ...]:
        """One for each program."""
        return tuple(self.back_label(name, program) for program in programs)

    def call_labels(self, name: str, programs: Sequence[Program]) -> tuple[tuple[int, int], ...]:
        """Labels of compiling and of calling a body, for each program."""
        label = self.builder.label
        named = ((f"compiling {name}", "compile"), (name, "call"))
        pairs = [[label(own, kind, program.scope.host, program.name) for own, kind in named] for program in programs]
        return tuple((compiling, calling) for compiling, calling in pairs)

    @property
    def issues(self) -> bool:
        """Whether the thread issues the ops of a compiled body one by one."""
        return self.rules is not None and self.rules.issues

    def _blocks(self, placed: Placed, program: Program) -> bool:
        """Whether the runtime waits for it: always, or wherever its result is not in a GPU's memory."""
        match self.rules.blocks if self.rules else "none":
            case "all":
                return True
            case "cpu":
                return not placed.memory or program.scope.kind(placed.memory) != "gpu"
            case _:
                return False


def refuse_endless(placed: Placed) -> None:
    """Raise TooLong for an op that waits for, or draws, more than any number."""
    demand = None if placed.cost is None else placed.cost.demand
    if demand is not None and inf in (demand.latency, demand.floor, *(amount for _, amount in demand.amounts)):
        raise ticks.TooLong(inf)
