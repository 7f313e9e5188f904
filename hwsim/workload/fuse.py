"""Fusion of successive elementwise ops of a compiled body into one op.

An op is fused with the preceding ops if it follows them directly, runs in the same queue on the same number of elements of the
same type, and uses a value that one of them writes. The fused op performs all their arithmetic. Its memory traffic is the sum of
their traffic minus

    one array per use of a value that an earlier fused op wrote or read       (the value is in a register)
    one array per value that is written and used only by fused ops            (it is never stored, and takes no memory)

where "only" means that no other op, wait or fetch of the program names the value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hwsim.devices import Cpu, Gpu, Sockets, Start, Work
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.workload.programs import Program
from hwsim.workload.statements import CollectiveStatement, Fetch, Issue, PlacedOp, Repeat, Statement, WaitStatement, walk

_NAMED = 3  # names in the label of a fused op


def fuse(body: Sequence[Statement], programs: Sequence[Program], builder: GraphBuilder, starts: Start) -> tuple[Statement, ...]:
    """Return the statements of a group with fused ops; `starts` is the launch mechanism of the kernels of compiled bodies."""
    uses = [_uses(body, rank) for rank in range(len(programs))]
    return _Fuser(programs[0].scope.machine, programs, builder, uses, starts).body(body)


def _uses(body: Sequence[Statement], rank: int) -> Counter[str]:
    """Number of uses of each value (or of the op with its name)."""
    uses: Counter[str] = Counter()
    for statement in walk(body):
        match statement:
            case Issue(ops=ops) | Fetch(ops=ops) | CollectiveStatement(ops=ops):
                uses.update(_used_values(ops[rank]))
            case WaitStatement(names=names):
                uses.update(names)
            case _:
                pass
    return uses


def _used_values(op: PlacedOp) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*op.reads, *op.updates)))


@dataclass(frozen=True, slots=True)
class _Fuser:
    machine: Machine
    programs: Sequence[Program]
    builder: GraphBuilder
    uses: Sequence[Mapping[str, int]]  # per rank
    starts: Start

    def body(self, body: Sequence[Statement]) -> tuple[Statement, ...]:
        fused: list[Statement] = []
        chain: list[Issue] = []
        for statement in body:
            if isinstance(statement, Issue) and chain and _joins(chain, statement):
                chain.append(statement)
                continue
            fused += self._fuse(chain)
            chain = [statement] if isinstance(statement, Issue) else []
            if isinstance(statement, Repeat):
                fused.append(Repeat(statement.times, self.body(statement.body), statement.place))
            elif not chain:
                fused.append(statement)
        return (*fused, *self._fuse(chain))

    def _fuse(self, chain: Sequence[Issue]) -> tuple[Issue, ...]:
        if len(chain) < 2:
            return tuple(chain)
        ranked = zip(*(issue.ops for issue in chain), strict=True)
        return (Issue(tuple(self._op(rank, ops) for rank, ops in enumerate(ranked))),)

    def _op(self, rank: int, ops: tuple[PlacedOp, ...]) -> PlacedOp:
        first, last = ops[0], ops[-1]
        made: dict[str, bool] = {}  # value -> whether a fused op created it (else it is updated)
        written: Counter[str] = Counter()
        inside: Counter[str] = Counter()  # uses of values that fused ops wrote
        reads: dict[str, None] = {}
        arrays = flop = 0.0
        for op in ops:
            reused = [value for value in _used_values(op) if value in made or value in reads]
            inside.update(value for value in reused if value in made)
            reads |= dict.fromkeys(value for value in op.reads if value not in made)
            inputs = op.pointwise.inputs if op.pointwise else 0
            arrays += max(inputs - len(reused), 0) + 1
            flop += op.pointwise.flop if op.pointwise else 0.0
            for value in (*op.updates, *op.writes):
                made.setdefault(value, value not in op.updates)
            written.update(dict.fromkeys((*op.updates, *op.writes), 1))
        used = self.uses[rank]
        lives = {value for value, anew in made.items() if not anew or not inside[value] or used.get(value, 0) > inside[value]}
        arrays -= math.fsum(count - (value in lives) for value, count in written.items())
        program, name = self.programs[rank], _name(ops)
        label = self.builder.label
        pointwise = first.pointwise
        model = self.machine.device(first.device).model
        if pointwise is None or not isinstance(model, Cpu | Sockets | Gpu):
            raise TypeError(f"'{first.name}' is not an elementwise op")
        moved = max(arrays, 0.0) * pointwise.array
        written_back = min(moved, pointwise.array * len(lives))
        work = Work(flop=flop, reads=moved - written_back, writes=written_back, dtype=pointwise.dtype, start=self.starts)
        cost = model.compute(first.device, work)
        sizes = {value: size for op in ops for value, size in op.sizes if value in lives}
        return replace(
            last,
            name=name,
            label=label(name, "elementwise", first.device, program.name),
            insert=label(name, "insert", "", program.name),
            cost=self.builder.cost(cost),
            reads=tuple(reads),
            writes=tuple(value for value, anew in made.items() if anew and value in lives),
            updates=tuple(value for value, anew in made.items() if not anew),
            after=tuple(dict.fromkeys(before for op in ops for before in op.after)),
            sizes=tuple(sizes.items()),
            also=tuple(dict.fromkeys(op.name for op in ops)),
            inner=frozenset(value for op in ops for value in op.inner if value in lives),
            pointwise=None,
        )


def _joins(chain: Sequence[Issue], issue: Issue) -> bool:
    """Whether every rank's op can be fused with the ops of the chain."""
    for rank, op in enumerate(issue.ops):
        before = [issue.ops[rank] for issue in chain]
        first = before[0]
        if first.call < 0 or first.pointwise is None or op.pointwise is None or op.after:
            return False
        if (op.call, op.device, op.queue, op.pool, op.memory) != (
            first.call,
            first.device,
            first.queue,
            first.pool,
            first.memory,
        ):
            return False
        if (op.pointwise.count, op.pointwise.dtype) != (first.pointwise.count, first.pointwise.dtype):
            return False
        if not any(value in (*other.writes, *other.updates) for other in before for value in _used_values(op)):
            return False
    return True


def _name(ops: Sequence[PlacedOp]) -> str:
    names = [op.name for op in ops]
    shown = names if len(names) <= _NAMED else [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    return " + ".join(shown)
