"""Steps of a training as ops: what each team computes, what is sent between stages, what copies exchange.

A team is the GPUs that split the same layers of the same micro-batch (tensor and context parallel).  They do the same at
the same time, so that what they do is one op that draws on all of them; a slow one among them slows it.  Copies of the
model (data parallel) that are alike, on devices and links that are, differ in nothing either: where asked for, one of them
is emitted for all, with what all draw of the links that it uses.

Queues of a team, named after its first device: compute; tp, cp, ep and dp, one for each kind of group that exchanges; sends
in each direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from hwsim.graph.builder import GraphBuilder, OpRef, block
from hwsim.models import Exchange, Kernel
from hwsim.records import dataclass
from hwsim.workload.programs import MAIN
from hwsim.workload.training.costs import EXPOSED, HIDDEN
from hwsim.workload.training.held import hold
from hwsim.workload.training.schedule import Turn, turns
from hwsim.workload.training.teams import Teams


@dataclass(slots=True)
class Rows:
    """Ops of one step while they are written."""

    rows: list[tuple[int, int, int]] = field(default_factory=list)  # label, cost, queue
    edges: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, label: int, cost: int, queue: int, after: Sequence[int]) -> int:
        """The number of a new op."""
        here = len(self.rows)
        self.rows.append((label, cost, queue))
        self.edges += [(before, here, 0) for before in dict.fromkeys(after) if before >= 0]
        return here


class Emission:
    """Writes the steps of one training."""

    def __init__(self, teams: Teams, builder: GraphBuilder, name: str) -> None:
        """name: of the program."""
        self._teams, self._builder, self._name = teams, builder, name
        self._rows = Rows()
        self._gathered: dict[int, int] = {}  # by stage the first op that gathers its weights
        self._final: list[Turn] = []  # by stage the turn that ends its step
        self._queues: dict[tuple[str, str], int] = {}
        self._computed: dict[tuple[int, int], list[int]] = {}  # what each team (stage, copy) computes, in order
        self._second: dict[tuple[int, int], int] = {}  # of each team, the first op after its first forward pass
        self._through: set[int] = set()  # stages whose first forward pass is written
        self._pieces: dict[tuple[int, int], list[int]] = {}  # of it, the ends of pieces
        self._lives: dict[tuple[int, int, int], list[int]] = {}  # ops of the first copy that need the activations of a turn

    # ---- the whole

    def emit(self, steps: int, start: float, *, shared: bool = False) -> None:
        """Append all steps.  shared: others may hold memory of the same devices."""
        begin = self._builder.op("start", kind="start", program=self._name, time=start) if start else None
        done = self._turns()
        ends = [end for stage in range(len(self._teams.stages)) for end in self._ending(stage, done[stage])]
        self._rows.add(self._builder.label("step", "step", "", self._name), -1, -1, ends)
        label, cost, queue = zip(*self._rows.rows, strict=True)
        number = self._builder.add(block(label, cost=cost, queue=queue, edges=sorted(self._rows.edges), times=steps))
        if begin is not None:
            for stage in range(len(self._teams.stages)):
                for copy in self._teams.copies:
                    self._builder.tie(begin, OpRef(number, self._computed[stage, copy][0]))
        hold(self._teams, self._builder, number, steps, self._computed, self._lives, shared=shared)

    def _turns(self) -> dict[int, list[int]]:
        """All micro-batches; by stage the ops that exchange gradients meanwhile.

        A stage's next turn is written once what it waits for is: so that every op stands behind those before it.
        """
        plan, m = self._teams.laid.plan, self._teams.laid.microbatches
        lines = [turns(plan.schedule, stage, plan.pp, m, plan.chunks) for stage in range(plan.pp)]
        self._final = [line[-1] for line in lines]
        finals = [{turn.chunk: turn for turn in line if not turn.forward} for line in lines]
        at = [0] * plan.pp
        arrived: dict[tuple[int, Turn, int], int] = {}  # (stage, turn, copy) -> op that brings what it needs
        exchanged: dict[int, list[int]] = {stage: [] for stage in range(plan.pp)}
        ready = {(0, Turn(each, 0, True)) for each in range(m)}
        while any(at[stage] < len(line) for stage, line in enumerate(lines)):
            for stage, line in enumerate(lines):
                while at[stage] < len(line) and (stage, line[at[stage]]) in ready:
                    turn = line[at[stage]]
                    last = finals[stage].get(turn.chunk) == turn and not turn.forward
                    ends = self._turn(stage, turn, arrived, exchanged[stage], last=last)
                    self._pass_on(stage, turn, ends, arrived, ready)
                    at[stage] += 1
        return exchanged

    def _pass_on(
        self,
        stage: int,
        turn: Turn,
        ends: dict[int, int],
        arrived: dict[tuple[int, Turn, int], int],
        ready: set[tuple[int, Turn]],
    ) -> None:
        """What a turn made goes to the next piece of the model, or, at the end of it, back."""
        plan = self._teams.laid.plan
        place = turn.chunk * plan.pp + stage + (1 if turn.forward else -1)
        if place < 0:
            return
        if place == plan.pp * plan.chunks:
            ready.add((stage, turn._replace(forward=False)))
            return
        chunk, target = divmod(place, plan.pp)
        there = turn._replace(chunk=chunk)
        ready.add((target, there))
        if target == stage:
            return
        name = "activations" if turn.forward else "gradients back"
        for copy in self._teams.copies:
            first = self._teams.layout.team(stage, copy)[0]
            cost = self._teams.sending(stage, target, copy)
            label = self._builder.label(f"send {name}", "send", first, self._name)
            queue = self._queue(first, "send" if turn.forward else "send back")
            arrived[target, there, copy] = self._rows.add(label, cost, queue, [ends[copy]])

    def _turn(
        self, stage: int, turn: Turn, arrived: dict[tuple[int, Turn, int], int], exchanged: list[int], *, last: bool
    ) -> dict[int, int]:
        """One micro-batch through a piece of a stage, on all copies that are emitted; by copy the op it ends with."""
        count = self._teams.cut(stage, last=last)
        sharded = bool(self._teams.stages[stage].gathered)
        tail = {copy: arrived.get((stage, turn, copy), -1) for copy in self._teams.copies}
        lives = self._lives.setdefault((stage, turn.microbatch, turn.chunk), [])
        through = stage in self._through
        for number in range(count):
            gathered = self._gather(stage, turn, count) if sharded else -1
            found: list[int] = []
            for copy in self._teams.copies:
                for segment in self._teams.segments(stage, turn, last, number, copy):
                    first = self._teams.layout.team(stage, copy)[0]
                    label = self._builder.label(segment.name, segment.kind, first, self._name)
                    queue = self._queue(first, segment.queue)
                    tail[copy] = self._rows.add(label, segment.cost, queue, [tail[copy], gathered])
                    if segment.queue == "compute":
                        self._computed.setdefault((stage, copy), []).append(tail[copy])
                    if through:
                        self._second.setdefault((stage, copy), tail[copy])
                    if copy == self._teams.copies[0]:
                        lives.append(tail[copy])
                self._pieces.setdefault((stage, copy), []).append(tail[copy])
                found.append(tail[copy])
            if not turn.forward:
                final = last and number == count - 1 and turn == self._final[stage]
                exchanged += self._scatter(stage, count, found, last=last, final=final)
        if turn.forward and turn.chunk == self._teams.laid.plan.chunks - 1:
            self._through.add(stage)
        return tail

    # ---- what copies exchange

    def _exchange(
        self, stage: int, each: Exchange, count: float, after: Sequence[int], *, hidden: bool, times: float = 1.0
    ) -> int:
        """A collective of the stage's copies on the comm queue; the part of it that nothing waits for, or the other."""
        part = times * (1.0 - each.exposed if hidden else each.exposed)
        if part <= 0:
            return -1
        cost = self._teams.scaled(self._teams.exchanging(stage, each, count), part, HIDDEN if hidden else EXPOSED)
        first = self._teams.layout.team(stage, self._teams.copies[0])[0]
        label = self._builder.label(each.name, each.operation, first, self._name)
        queue = "scatter" if each.name == "gradients" and self._teams.stages[stage].gathered else "dp"  # side by side
        return self._rows.add(label, cost, self._queue(first, queue), after)

    def _gather(self, stage: int, turn: Turn, count: int) -> int:
        """Weights of the next piece, once the piece before the one at work has been computed."""
        each = self._teams.stages[stage].gathered[0]
        after = [ops[-2] for copy in self._teams.copies if len(ops := self._pieces.get((stage, copy), [])) > 1]
        times = 1.0 if turn.forward else max(1.0, each.times - 1.0)
        found = self._exchange(stage, each, count, after, hidden=True, times=times)
        self._gathered.setdefault(stage, found)
        return found

    def _scatter(self, stage: int, count: int, after: Sequence[int], *, last: bool, final: bool) -> list[int]:
        """Gradients of a piece, while the next one is computed; those of the last are among the exposed ones."""
        many = count * self._teams.laid.plan.chunks
        if self._teams.stages[stage].gathered:
            found = self._exchange(stage, self._teams.stages[stage].gathered[1], count, after, hidden=True)
        elif last and self._teams.overlaps(stage):
            each = self._teams.gradients(stage)
            found = -1
            if each is not None and not final:
                found = self._exchange(stage, each, many, after, hidden=True, times=many / (many - 1))
        else:
            found = -1
        return [found] if found >= 0 else []

    def _ending(self, stage: int, exchanged: Sequence[int]) -> list[int]:
        """The end of a step: what of the gradients nothing hides, the optimizer, updated weights.

        The next step starts with the weights, but for the part that is hidden behind its first forward pass.
        """
        before = [self._computed[stage, copy][-1] for copy in self._teams.copies]
        waited = [*before, *exchanged]
        optimized: list[int] = []
        for part in self._teams.stages[stage].ending:
            item = (self._teams.gradients(stage) or part) if part.name == "gradients" else part
            if isinstance(item, Kernel):
                optimized = [self._optimizer(stage, copy, item, waited) for copy in self._teams.copies]
                waited = optimized
                gathered = self._gathered.get(stage, -1)
                self._rows.edges += [(each, gathered, 1) for each in optimized if gathered >= 0]
                continue
            here = self._exchange(stage, item, 1.0, waited, hidden=False)
            waited = [here] if here >= 0 else waited
            if item.name == "weights":
                behind = self._exchange(stage, item, 1.0, waited, hidden=True)
                first = [(here, self._computed[stage, copy][0], 1) for copy in self._teams.copies]
                second = [(behind, self._second[stage, copy], 1) for copy in self._teams.copies]
                self._rows.edges += [edge for edge in (*first, *second) if edge[0] >= 0]
        return waited

    def _optimizer(self, stage: int, copy: int, kernel: Kernel, after: Sequence[int]) -> int:
        team = self._teams.layout.team(stage, copy)
        label = self._builder.label("optimizer", "optimizer", team[0], self._name)
        cost = self._teams.kernel(kernel, team, self._teams.framework.step)
        return self._rows.add(label, cost, self._queue(team[0], "compute"), after)

    def _queue(self, device: str, what: str) -> int:
        key = device, what
        if key not in self._queues:
            name = f"{device}.{what}"
            shown = name if self._name == MAIN else f"{self._name}:{name}"
            self._queues[key] = self._builder.queue(shown, device)
        return self._queues[key]
