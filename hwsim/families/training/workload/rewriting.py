"""Ops of a training written once for all runs of a study in which only costs differ.

The writer of ops asks for costs: of kernels, of the host's work, of exchanges. Beside them it sees the plan, the hosts and the
names. Where those are equal, and every cost asked for has as many parts with the same names, it would write the same ops, queues
and edges; so they are taken from before, and the costs put in. What decides costs (links, clocks, the choice of an algorithm or
of a kernel) is worked out anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hwsim.demand import Cost
from hwsim.families.training.workload.asking import Answers, Given
from hwsim.families.training.workload.plan import Buckets
from hwsim.families.training.workload.workers import Ops
from hwsim.graph.builder import GraphBuilder, Written
from hwsim.records import dataclass
from hwsim.spec.shelf import shared_by

if TYPE_CHECKING:
    from hwsim.families.training.workload.writing import Steps

MOST: Final = 8  # structures that are kept


@dataclass(slots=True)
class Tape:
    """The questions of a writer, in its order, each once; ops are written with the numbers of costs on the tape."""

    answers: Answers
    asked: dict[Any, tuple[tuple[Any, ...], int, Given]] = field(default_factory=dict)
    costs: list[Cost] = field(default_factory=list)
    _kernels: dict[int, tuple[object, dict[int, Cost]]] = field(default_factory=dict)  # by kind of GPU the costs of all kernels

    def numbers(self, *asked: Any) -> list[tuple[str, int]]:
        """Name and number on the tape of each part; -1 for a part without a cost."""
        key = (id(asked[1]), asked[2]) if asked[0] == "kernel" else asked  # a hash of a kernel takes long, and the plan keeps it
        if key not in self.asked:
            given = self.answers.of(asked)
            self.asked[key] = asked, len(self.costs), given
            self.costs += [cost for _, cost in given if cost is not None]
        _, first, given = self.asked[key]
        numbers = []
        for name, cost in given:
            numbers.append((name, -1 if cost is None else first))
            first += cost is not None
        return numbers

    def played(self, answers: Answers) -> list[Cost] | None:
        """The costs of the same questions answered anew; None if an answer has other parts."""
        kinds = answers.plan.kinds
        only = kinds.costs[0] if len(kinds.costs) == 1 else None
        rated = self._kernels.get(id(only))
        costs: dict[int, Cost] = dict(rated[1]) if rated is not None else {}
        numbers: list[int] = []
        for question, first, before in self.asked.values():
            if question[0] == "kernel":
                if rated is None:
                    parts = kinds.on(question[2]).apart(question[1], question[2])
                    if len(parts) != len(before):
                        return None
                    costs.update(enumerate(parts, first))
                    numbers += range(first, first + len(parts))
                continue
            given = answers.of(question)
            if [(name, cost is None) for name, cost in given] != [(name, cost is None) for name, cost in before]:
                return None
            costs.update(enumerate([cost for _, cost in given if cost is not None], first))
        if rated is None and only is not None:
            if len(self._kernels) >= MOST:
                self._kernels.clear()
            self._kernels[id(only)] = only, {number: costs[number] for number in numbers}
        return [costs[number] for number in range(len(self.costs))]


class Kept(NamedTuple):
    """Ops that were written before."""

    frame: tuple[Any, ...]
    steps: Steps
    tape: Tape
    written: Written


def _frame(answers: Answers, hosts: Sequence[str], name: str) -> tuple[Any, ...] | None:
    """All that the writer sees except costs; None where it sees more."""
    plan = answers.plan
    exchange, layout = plan.exchange, plan.layout
    if not isinstance(exchange, Buckets) or exchange.by != "all-reduce" or layout.pp > 1 or layout.tp > 1:
        return None
    kinds = tuple(plan.kinds.of.items()), len(plan.kinds.costs)
    return (
        name, tuple(hosts), tuple(answers.represented.classes.of.tolist()), kinds, layout,
        exchange, plan.batch, plan.microbatches, plan.schedule, plan.steps,
        plan.dtype, plan.stages,
    )  # fmt: skip


def rewritten(steps_of: Callable[..., Steps], answers: Answers, hosts: Sequence[str], ops: Ops) -> Steps | None:
    """Write the steps of a training; their writer. None where runs share nothing, or not these.

    steps_of: makes a writer of answers and ops, which asks a tape for costs.
    """
    kept = shared_by("trainings") if ops.builder.is_empty else None
    frame = None if kept is None else _frame(answers, hosts, ops.program)
    if kept is None or frame is None:
        return None
    earlier: Kept
    for earlier in kept.get("", ()):
        if earlier.frame == frame and (costs := earlier.tape.played(answers)) is not None:
            ops.builder.write_again(earlier.written, costs)
            return earlier.steps
    taped, tape = GraphBuilder(), Tape(answers)
    steps = steps_of(answers, Ops(taped, ops.program), tape=tape)
    steps.write()
    written = taped.written()
    kept[""] = [Kept(frame, steps, tape, written), *kept.get("", ())][:MOST]
    ops.builder.write_again(written, tape.costs)
    return steps
