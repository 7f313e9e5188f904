"""Steps of a training as ops: what each team computes, what is sent between stages, what copies exchange.

A team is the GPUs that split the same layers of the same micro-batch (tensor and context parallel).  They do the same at
the same time, so that what they do is one op that draws on all of them; a slow one among them slows it.  Copies of the
model (data parallel) that are alike, on devices and links that are, differ in nothing either: where asked for, one of them
is emitted for all, with what all draw of the links that it uses.

Queues of a team, named after its first device: compute; tp, cp, ep and dp, one for each kind of group that exchanges; sends
in each direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hwsim.demand import Cost
from hwsim.models import Collect, Kernel, activations, stage_of, training_memory
from hwsim.opgraph import Buffer, Mark
from hwsim.workload.builder import GraphBuilder, OpRef, block
from hwsim.workload.programs import MAIN
from hwsim.workload.training.costs import Computing, Exchanges, Spent, restricted, scaled
from hwsim.workload.training.layout import Layout, Names
from hwsim.workload.training.pieces import Piece, collects, kernels, pieces
from hwsim.workload.training.planning import Planned
from hwsim.workload.training.schedule import Turn, turns
from hwsim.workload.training.wide import LEAST

MOST_PIECES = 16  # of a backward pass, where nobody says how many buckets gradients are exchanged in


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


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a turn that is one op: computing, or a collective that the team waits for, on a queue of its own."""

    name: str
    kind: str
    cost: int
    queue: str = "compute"


class Emission:
    """Writes the steps of one training."""

    def __init__(
        self,
        plan: Planned,
        layout: Layout,
        builder: GraphBuilder,
        computing: Computing,
        exchanges: Exchanges,
        *,
        name: str,
        copies: Sequence[int],
        layered: bool,
        buckets: int | None,
    ) -> None:
        """copies: those that are emitted, each for as many as there are copies for each of them.  layered: ops of layers."""
        self.laid, self.framework = plan.laid, plan.framework
        self.layout = layout
        self.stages = tuple(stage_of(plan.laid, plan.framework, number) for number in range(plan.laid.plan.pp))
        self.inside: dict[int, float] = {}  # of costs of ops, the part of their time that is a collective
        self._builder, self._name = builder, name
        self._computing, self._exchanges = computing, exchanges
        self._copies, self._layered = copies, layered
        self._whole = len(copies) == self.laid.dp
        self._buckets = buckets
        self._rows = Rows()
        self._queues: dict[tuple[str, str], int] = {}
        self._segments: dict[tuple[int, int, bool, bool, int, int], tuple[Segment, ...]] = {}
        self._recipes: dict[tuple[int, int, bool, bool, int], Sequence[tuple[Spent, Collect | None]]] = {}
        self._neighbours: dict[tuple[int, int], tuple[int, ...]] = {}
        self._parts: dict[tuple[int, float], int] = {}
        self._whole_costs: list[Cost] = []
        self._groups: dict[tuple[int, int], tuple[Names, ...]] = {}
        self._told: frozenset[str] | None = None
        self._bandwidth = plan.gpu.memory.bandwidth
        self._computed: dict[tuple[int, int], list[int]] = {}  # what each team (stage, copy) computes, in order
        self._pieces: dict[tuple[int, int], list[int]] = {}  # of it, the ends of pieces
        self._lives: dict[tuple[int, int, int], list[int]] = {}  # ops of the first copy that need the activations of a turn

    # ---- the whole

    def emit(self, steps: int, start: float) -> tuple[str, ...]:
        """Append all steps; the first device of each stage."""
        begin = self._builder.op("start", kind="start", program=self._name, time=start) if start else None
        done = self._turns()
        ends = [end for stage in range(len(self.stages)) for end in self._ending(stage, done[stage])]
        self._rows.add(self._builder.label("step", "step", "", self._name), -1, -1, ends)
        label, cost, queue = zip(*self._rows.rows, strict=True)
        number = self._builder.add(block(label, cost=cost, queue=queue, edges=sorted(self._rows.edges), times=steps))
        if begin is not None:
            for stage in range(len(self.stages)):
                for copy in self._copies:
                    self._builder.tie(begin, OpRef(number, self._computed[stage, copy][0]))
        self._hold(number, steps)
        return tuple(self.layout.team(stage, self._copies[0])[0] for stage in range(len(self.stages)))

    def _turns(self) -> dict[int, list[int]]:
        """All micro-batches; by stage the ops that exchange gradients meanwhile.

        A stage's next turn is written once what it waits for is: so that every op stands behind those before it.
        """
        plan, m = self.laid.plan, self.laid.microbatches
        lines = [turns(plan.schedule, stage, plan.pp, m, plan.chunks) for stage in range(plan.pp)]
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
        plan = self.laid.plan
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
        for copy in self._copies:
            first = self.layout.team(stage, copy)[0]
            cost = self._builder.cost(self._sending(stage, target, copy))
            label = self._builder.label(f"send {name}", "send", first, self._name)
            queue = self._queue(first, "send" if turn.forward else "send back")
            arrived[target, there, copy] = self._rows.add(label, cost, queue, [ends[copy]])

    def _turn(
        self, stage: int, turn: Turn, arrived: dict[tuple[int, Turn, int], int], exchanged: list[int], *, last: bool
    ) -> dict[int, int]:
        """One micro-batch through a piece of a stage, on all copies that are emitted; by copy the op it ends with."""
        count = self._cut(stage, last=last)
        sharded = bool(self.stages[stage].gathered)
        tail = {copy: arrived.get((stage, turn, copy), -1) for copy in self._copies}
        lives = self._lives.setdefault((stage, turn.microbatch, turn.chunk), [])
        for number in range(count):
            gathered = self._gather(stage, turn, count) if sharded else -1
            found: list[int] = []
            for copy in self._copies:
                for segment in self._of(stage, turn, last, number, copy):
                    first = self.layout.team(stage, copy)[0]
                    label = self._builder.label(segment.name, segment.kind, first, self._name)
                    queue = self._queue(first, segment.queue)
                    tail[copy] = self._rows.add(label, segment.cost, queue, [tail[copy], gathered])
                    if segment.queue == "compute":
                        self._computed.setdefault((stage, copy), []).append(tail[copy])
                    if copy == self._copies[0]:
                        lives.append(tail[copy])
                self._pieces.setdefault((stage, copy), []).append(tail[copy])
                found.append(tail[copy])
            if not turn.forward:
                exchanged += self._scatter(stage, count, found, last=last)
        return tail

    # ---- what copies exchange

    def _overlaps(self, stage: int) -> bool:
        """Whether gradients are exchanged while the last micro-batch goes back."""
        each = self._gradients(stage)
        return each is not None and each.exposed < 1.0

    def _gradients(self, stage: int) -> Collect | None:
        return next((each for each in collects(self.stages[stage].ending) if each.name == "gradients"), None)

    def _cut(self, stage: int, *, last: bool) -> int:
        """Pieces of a turn."""
        layers = max(1, self.laid.layers_of(stage) // self.laid.plan.chunks)
        if self.stages[stage].gathered or (last and self._overlaps(stage)):
            return min(layers, self._buckets or MOST_PIECES)
        return 1

    def _exchange(
        self, stage: int, each: Collect, count: float, after: Sequence[int], *, hidden: bool, times: float = 1.0
    ) -> int:
        """A collective of the stage's copies on the comm queue; the part of it that nothing waits for, or the other."""
        part = times * (1.0 - each.exposed if hidden else each.exposed)
        if part <= 0:
            return -1
        cost = self._scaled(self._exchanging(stage, each, count), part)
        first = self.layout.team(stage, self._copies[0])[0]
        label = self._builder.label(each.name, each.what, first, self._name)
        queue = "scatter" if each.name == "gradients" and self.stages[stage].gathered else "dp"  # side by side
        return self._rows.add(label, cost, self._queue(first, queue), after)

    def _gather(self, stage: int, turn: Turn, count: int) -> int:
        """Weights of the next piece, once the piece before the one at work has been computed."""
        each = self.stages[stage].gathered[0]
        after = [ops[-2] for copy in self._copies if len(ops := self._pieces.get((stage, copy), [])) > 1]
        times = 1.0 if turn.forward else max(1.0, each.times - 1.0)
        return self._exchange(stage, each, count, after, hidden=True, times=times)

    def _scatter(self, stage: int, count: int, after: Sequence[int], *, last: bool) -> list[int]:
        """Gradients of a piece, while the next one is computed."""
        plan = self.laid.plan
        if self.stages[stage].gathered:
            found = self._exchange(stage, self.stages[stage].gathered[1], count, after, hidden=True)
        elif last and self._overlaps(stage):
            each = self._gradients(stage)
            found = -1 if each is None else self._exchange(stage, each, count * plan.chunks, after, hidden=True)
        else:
            found = -1
        return [found] if found >= 0 else []

    def _ending(self, stage: int, exchanged: Sequence[int]) -> list[int]:
        """The end of a step: what of the gradients nothing hides, the optimizer, updated weights.

        The next step starts with the weights, but for the part that is hidden behind it.
        """
        before = [self._computed[stage, copy][-1] for copy in self._copies]
        waited = [*before, *exchanged]
        optimized: list[int] = []
        for item in self.stages[stage].ending:
            if isinstance(item, Kernel):
                optimized = [self._optimizer(stage, copy, item, waited) for copy in self._copies]
                waited = optimized
                continue
            here = self._exchange(stage, item, 1.0, waited, hidden=False)
            waited = [here] if here >= 0 else waited
            if item.name == "weights":
                self._exchange(stage, item, 1.0, waited, hidden=True)
                self._rows.edges += [(here, self._computed[stage, copy][0], 1) for copy in self._copies if here >= 0]
        return waited

    def _optimizer(self, stage: int, copy: int, kernel: Kernel, after: Sequence[int]) -> int:
        team = self.layout.team(stage, copy)
        spent = self._computing.kernels((kernel,))
        if self.framework.step > 0:
            spent = spent.and_then(Spent({"host": self.framework.step}))
        label = self._builder.label("optimizer", "optimizer", team[0], self._name)
        return self._rows.add(label, self._cost(spent, team), self._queue(team[0], "compute"), after)

    # ---- costs

    def _of(self, stage: int, turn: Turn, last: bool, number: int, copy: int) -> tuple[Segment, ...]:
        """The ops of one piece of a turn on one team."""
        key = (stage, turn.chunk, turn.forward, last, number, copy)
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = tuple(self._made_of(stage, turn, last, number, copy))
        return found

    def _made_of(self, stage: int, turn: Turn, last: bool, number: int, copy: int) -> list[Segment]:
        name = "forward" if turn.forward else "backward"
        team = self.layout.team(stage, copy)
        found: list[Segment] = []
        spent = Spent()
        for computed, item in self._recipe(stage, turn, last, number):
            spent = spent.and_then(computed)
            if item is None:
                continue
            cost, part = self._inside(item, stage, copy), item.times
            if item.axis == "ep" and self._whole:  # every one of the copies that split the experts has its part in it
                part /= self.laid.plan.ep
            elif self._layered:
                if any(spent.each):
                    found.append(Segment(name, name, self._cost(spent, team)))
                    spent = Spent()
                waited = item.times * item.exposed
                found.append(Segment(f"{item.name} ({item.axis})", item.what, self._scaled(cost, waited), item.axis))
                spent = spent.and_then(self._exchanges.spent(cost, item.axis, 0.0, item.times - waited))
                continue
            spent = spent.and_then(self._exchanges.spent(cost, item.axis, item.times * item.exposed, part))
        count = self._cut(stage, last=last)
        for each, exposed in self._awaited(stage, forward=turn.forward):
            cost = self._exchanging(stage, each, count)
            part = exposed / (self.laid.dp if self._whole else 1)
            spent = spent.and_then(self._exchanges.spent(cost, "dp", exposed, part))
        found.append(Segment(name, name, self._cost(spent, team)))
        return found

    def _recipe(self, stage: int, turn: Turn, last: bool, number: int) -> Sequence[tuple[Spent, Collect | None]]:
        """What is computed, and the collective that follows it, again and again: the same on all copies."""
        key = (stage, turn.chunk, turn.forward, last, number)
        found = self._recipes.get(key)
        if found is None:
            cut = pieces(self.stages[stage], self.laid, turn.chunk, forward=turn.forward, count=self._cut(stage, last=last))
            found = self._recipes[key] = self._layers(cut[number]) if self._layered else self._at_once(cut[number])
        return found

    def _layers(self, piece: Piece) -> list[tuple[Spent, Collect | None]]:
        """Layer by layer."""
        found: list[tuple[Spent, Collect | None]] = []
        run: list[Kernel] = []
        for items in piece.runs():
            for item in items:
                if isinstance(item, Kernel):
                    run.append(item)
                else:
                    found.append((self._computing.kernels(run), item))
                    run = []
        return [*found, (self._computing.kernels(run), None)]

    def _at_once(self, piece: Piece) -> list[tuple[Spent, Collect | None]]:
        """All layers as one."""
        spent, found = Spent(), dict[Collect, float]()
        for items, times in piece.groups:
            spent = spent.and_then(self._computing.kernels(kernels(items)), times)
            for each in collects(items):
                found[each] = found.get(each, 0.0) + times
        return [(spent, None), *((Spent(), replace(each, times=each.times * times)) for each, times in found.items())]

    def _awaited(self, stage: int, *, forward: bool) -> list[tuple[Collect, float]]:
        """Collectives of sharded weights that the computing of a piece partly waits for."""
        if not self.stages[stage].gathered:
            return []
        weights, gradients = self.stages[stage].gathered
        times = 1.0 if forward else max(1.0, weights.times - 1.0)
        return [(weights, weights.exposed * times), *([] if forward else [(gradients, gradients.exposed)])]

    def _inside(self, item: Collect, stage: int, copy: int) -> Cost:
        """A collective of a team, and of those it speaks for on the same nodes."""
        groups = tuple(group for each in self._near(stage, copy) for group in self.layout.groups(item.axis, stage, each))
        return self._exchanges.cost(tuple(dict.fromkeys(groups)), item.what, item.size)

    def _sending(self, stage: int, target: int, copy: int) -> Cost:
        pairs = tuple(
            pair
            for each in self._near(stage, copy)
            for pair in zip(self.layout.team(stage, each), self.layout.team(target, each), strict=True)
        )
        return self._exchanges.cost(pairs, "send", self.stages[stage].passed)

    def _near(self, stage: int, copy: int) -> tuple[int, ...]:
        """Copies that a copy speaks for which have devices on the same nodes: they share links inside them."""
        if self._whole:
            return (copy,)
        found = self._neighbours.get((stage, copy))
        if found is None:
            here = self.layout.nodes(stage, copy)
            found = tuple(each for each in range(self.laid.dp) if here & self.layout.nodes(stage, each))
            self._neighbours[stage, copy] = found
        return found

    def _across(self, stage: int, size: int) -> tuple[Names, ...]:
        if (stage, size) not in self._groups:
            self._groups[stage, size] = self.layout.across(stage, size)
        return self._groups[stage, size]

    def _exchanging(self, stage: int, each: Collect, count: float = 1.0) -> Cost:
        """A collective of all copies of a stage, one of `count` pieces."""
        shards = self.laid.shards if each.name == "weights" else self.laid.dp
        groups = self._across(stage, shards)
        if not self._whole and len(groups) * shards >= LEAST:
            return self._exchanges.told(groups, self._across(0, shards)[0], each.what, each.size / count)
        cost = self._exchanges.cost(groups, each.what, each.size / count)
        return cost if self._whole else restricted(cost, self._telling())

    def _telling(self) -> frozenset[str]:
        """Capacities that tell how long the exchanges between copies take: those that a team uses otherwise, too, and one
        of all on which the same is drawn.
        """
        if self._told is None:
            used: set[str] = set()
            for stage in range(len(self.stages)):
                copy = self._copies[0]
                layer = self.stages[stage].layer
                for item in dict.fromkeys(collects((*layer.forward, *layer.backward))):
                    used.update(name for name, _ in self._inside(item, stage, copy).demand.amounts)
                for target in {stage - 1, stage + 1} & set(range(len(self.stages))):
                    used.update(name for name, _ in self._sending(stage, target, copy).demand.amounts)
                used.update(f"{name}.{what}" for name in self.layout.team(stage, copy) for what in ("compute", "memory"))
            drawn: dict[str, list[tuple[int, float]]] = {}
            for number, cost in enumerate(self._all_exchanges()):
                for name, amount in cost.demand.amounts:
                    drawn.setdefault(name, []).append((number, amount))
            rates = self._exchanges.rates
            alike: dict[tuple[float, tuple[tuple[int, float], ...]], str] = {}
            for name, amounts in drawn.items():
                alike.setdefault((rates[name], tuple(amounts)), name)
            self._told = frozenset(used | set(alike.values()))
        return self._told

    def _all_exchanges(self) -> list[Cost]:
        """Of all stages, whole."""
        found = []
        for stage, each in enumerate(self.stages):
            for item in (*each.gathered, *collects(each.ending)):
                shards = self.laid.shards if item.name == "weights" else self.laid.dp
                found.append(self._exchanges.cost(self._across(stage, shards), item.what, item.size))
        return found

    def _cost(self, spent: Spent, team: Names) -> int:
        """Index of the cost of an op of a team."""
        index = self._builder.cost(spent.cost(team, self._exchanges.is_wire, self._bandwidth))
        if spent.collecting > 0:
            self.inside[index] = spent.collecting / spent.total
        return index

    def _scaled(self, cost: Cost, part: float) -> int:
        """Index of a part of a cost, made once."""
        found = self._parts.get((id(cost), part))  # to hash all it draws takes longer than to make it
        if found is None:
            found = self._parts[id(cost), part] = self._builder.cost(cost if part == 1.0 else scaled(cost, part))
            self._whole_costs.append(cost)  # an id is one's own as long as one lives
        return found

    def _queue(self, device: str, what: str) -> int:
        key = device, what
        if key not in self._queues:
            name = f"{device}.{what}"
            shown = name if self._name == MAIN else f"{self._name}:{name}"
            self._queues[key] = self._builder.queue(shown, device)
        return self._queues[key]

    # ---- memory

    def _hold(self, number: int, steps: int) -> None:
        """Buffers of the first copy: what a step keeps all the time, and activations from forward to backward."""
        plan = self.laid.plan
        attention = self.framework.attention
        one = activations(self.laid.model, plan, self.laid.sequence, attention)
        whole = activations(self.laid.model, replace(plan, recompute="none"), self.laid.sequence, attention)
        for stage in range(len(self.stages)):
            device = self.layout.team(stage, self._copies[0])[0]
            first = self._computed[stage, self._copies[0]][0]
            found = training_memory(self.laid, attention, stage, self.framework.gradient)
            for value, size in (
                ("weights", found.weights),
                ("gradients", found.gradients),
                ("optimizer states", found.optimizer),
                ("buffers", found.buffers),
            ):
                if size > 0:
                    mark = Mark(number, first)
                    self._builder.buffer(Buffer(value, "training", device, math.ceil(size), "scope", mark, (), None, number))
            kept = self.laid.layers_of(stage) / plan.chunks * one
            for (at, _, _), ops in self._lives.items():
                if at != stage:
                    continue
                users = tuple(Mark(number, op) for op in (ops[0], ops[-1]))
                self._builder.buffer(
                    Buffer("activations", "forward", device, math.ceil(kept), "last-use", users[0], users, None, number, 0, steps)
                )
            if plan.recompute == "full":  # the layer that is computed again
                again = Mark(number, first)
                self._builder.buffer(
                    Buffer("recomputed layer", "backward", device, math.ceil(whole), "scope", again, (), None, number)
                )
