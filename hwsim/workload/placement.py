"""Placement of the ops of a file: device, queue, cost and labels, under the rules of the program's runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from math import ceil, inf
from typing import Final

from hwsim import ticks
from hwsim.devices import CannotCompute, Start
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import NoRoute, UnknownName
from hwsim.ops import CannotPlace, ComputeOp, FetchOp, LoweredOp, Op, Scope, ValueLocation, stated_sizes
from hwsim.ops.sensitivity import lower_with_uncertainty
from hwsim.records import dataclass
from hwsim.spec import Mistakes
from hwsim.workload.file import Rules
from hwsim.workload.programs import Program, Queues
from hwsim.workload.statements import PlacedOp

_ON_A_CPU: Final = "set `device` to a gpu, or use a runtime that compiles for CPUs: mxnet-hybrid, torchscript, tf-function"


@dataclass(slots=True)
class OpPlacer:
    """A context in which the ops of one group are placed, with the locations of their values.

    Args:
        homes: memory and size of each value, by program.
        scopes: scope of names for each program and kernel launch mechanism.
        missed: (program, value) pairs that were fetched before any op wrote the value.
        never: number of repeats around the op with 0 iterations; if positive, unknown devices are no mistake.
    """

    rules: Rules | None
    builder: GraphBuilder
    queues: Queues
    mistakes: Mistakes
    homes: dict[str, dict[str, ValueLocation]] = field(default_factory=dict)
    scopes: dict[tuple[str, Start], Scope] = field(default_factory=dict)
    missed: set[tuple[str, str]] = field(default_factory=set)
    never: int = 0

    @property
    def compiles(self) -> bool:
        """Whether the runtime compiles the bodies of `call`."""
        return self.rules is not None and self.rules.compiles

    @property
    def shares(self) -> bool:
        """Whether `asnumpy` shares the memory of arrays in host memory with NumPy."""
        return self.rules is not None and self.rules.converts == "share"

    def looks_back(self) -> bool:
        """Whether a fetch precedes the op that writes its value, so that it reads the value of the previous iteration."""
        return any(value in self.homes[program] for program, value in sorted(self.missed))

    def place(self, op: Op, kind: str, program: Program, call: int, layer: bool = False) -> PlacedOp | None:
        """Place the op of one program; return None if a mistake was added.

        Args:
            kind: key of the op in the file.
            call: number of the compiled body that contains the op; -1: none.
            layer: whether the op is in the body of a `call` that is not compiled.
        """
        homes = self.homes.setdefault(program.name, {})
        if isinstance(op, FetchOp):
            self.missed |= {(program.name, value) for value in op.reads if value not in homes}
        try:
            starts = self.rules.starts if self.rules is not None and call >= 0 else program.scope.starts
            placed = lower_with_uncertainty(op, self._scope(program, homes, starts))
            refuse_endless(placed)
            if starts == "graph" and isinstance(op, ComputeOp) and program.scope.kind(placed.device) == "cpu":
                raise CannotPlace(f"'{placed.device}' is a cpu, but the runtime starts compiled bodies as GPU graphs", _ON_A_CPU)
            femtoseconds = ticks.femtoseconds(placed.time + (self.rules.per_op if self.rules and call >= 0 else 0.0))
        except (CannotCompute, CannotPlace, NoRoute, UnknownName, ticks.TooLong) as error:
            if not self.never:
                self.mistakes.add(op.place, error.message, error.hint)
            return None
        sizes = {}
        if op.writes or op.updates:
            sizes = {**dict.fromkeys(op.writes, placed.output), **stated_sizes(op.writes), **stated_sizes(op.updates)}
        for name in (*op.writes, *op.updates):
            old = homes.get(name) if name in op.updates else None
            homes[name] = ValueLocation(old.memory if old else placed.memory, sizes.get(name) or (old.bytes if old else 0.0))
        label, name = self.builder.label, op.name or kind
        threaded = self.rules is not None
        fetched = isinstance(op, FetchOp)
        block = (op.block or self._blocks(placed, program)) and not fetched
        pool = -1 if op.queue or fetched else self.queues.pool(program, placed, kind)
        return PlacedOp(
            name=name,
            label=label(name, kind, placed.device, program.name),
            dispatch=label(name, "dispatch", program.scope.host, program.name)
            if threaded and not fetched and (call < 0 or self.issues)
            else -1,
            insert=label(name, "insert", "", program.name) if threaded else -1,
            back=self.back_label(name, program) if block or fetched else -1,
            queue=self.queues.of(program, placed) if placed.queue and pool < 0 else -1,
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
            pool=pool,
            join=label(name, "wait", "", program.name) if pool >= 0 else -1,
        )

    def _scope(self, program: Program, homes: dict[str, ValueLocation], starts: Start) -> Scope:
        """The scope of names of a program for one launch mechanism of its kernels."""
        scope = self.scopes.get((program.name, starts))
        if scope is None:
            scope = self.scopes[program.name, starts] = replace(program.scope, values=homes, starts=starts, shares=self.shares)
        return scope

    def back_label(self, name: str, program: Program) -> int:
        """Return the label of a program's return from a wait for `name`."""
        kind, device = ("return", program.scope.host) if self.rules else ("wait", "")
        return self.builder.label(name, kind, device, program.name)

    def back_labels(self, name: str, programs: Sequence[Program]) -> tuple[int, ...]:
        """Return the label of the return from a wait for `name`, per program."""
        return tuple(self.back_label(name, program) for program in programs)

    def call_labels(self, name: str, programs: Sequence[Program]) -> tuple[tuple[int, int, int], ...]:
        """Return the labels of compiling a body, of calling it, and of the nodes of its graph, per program."""
        label = self.builder.label
        kinds = [(f"compiling {name}", "compile"), (name, "call")]
        if self.starts_graphs:
            kinds.append((f"nodes of {name}", "call"))
        found = [[label(text, kind, program.scope.host, program.name) for text, kind in kinds] for program in programs]
        return tuple((labels[0], labels[1], labels[-1]) for labels in found)

    @property
    def starts_graphs(self) -> bool:
        """Whether a compiled body is launched as a graph whose launch takes time for each of its nodes."""
        return self.rules is not None and self.rules.issues and self.rules.starts == "graph"

    @property
    def issues(self) -> bool:
        """Whether the thread issues the ops of a compiled body one by one."""
        return self.rules is not None and self.rules.issues and not self.starts_graphs

    def _blocks(self, placed: LoweredOp, program: Program) -> bool:
        """Whether the runtime waits for the op: always, or if its result is not in GPU memory."""
        match self.rules.blocks if self.rules else "none":
            case "all":
                return True
            case "cpu":
                return not placed.memory or program.scope.kind(placed.memory) != "gpu"
            case _:
                return False


def refuse_endless(placed: LoweredOp) -> None:
    """Raise TooLong for an op of infinite duration or demand."""
    demand = None if placed.cost is None else placed.cost.demand
    if demand is not None and inf in (demand.latency, demand.floor, *(amount for _, amount in demand.amounts)):
        raise ticks.TooLong(inf)
