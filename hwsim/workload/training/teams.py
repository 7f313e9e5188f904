"""What each team does and what that costs: the segments of its turns, and exchanges between teams and copies.

Of a training of which one copy of the model is told (`copies`), a collective inside a team draws also what those of the other
copies on the same nodes draw, and an exchange between copies what all of them do: of the capacities that the told copy uses,
and of one of all others on which the same is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hwsim.demand import Cost
from hwsim.graph.builder import GraphBuilder
from hwsim.models import Exchange, Kernel, Stage, hiding, stage_of
from hwsim.models.layer import exchanges as exchanges_in
from hwsim.records import dataclass
from hwsim.workload.training.costs import EXPOSED, Exchanges, Spent, beside, restricted, scaled
from hwsim.workload.training.kinds import Kinds
from hwsim.workload.training.layout import Layout, Names
from hwsim.workload.training.pieces import Piece, pieces
from hwsim.workload.training.planning import Planned
from hwsim.workload.training.schedule import Turn
from hwsim.workload.training.wide import LEAST


@dataclass(frozen=True, slots=True)
class Segment:
    """Part of a turn that is one op: computing, or a collective that the team waits for, on a queue of its own."""

    name: str
    kind: str
    cost: int
    queue: str = "compute"


def stages(plan: Planned) -> tuple[Stage, ...]:
    """Of the pipeline, first to last."""
    return tuple(stage_of(plan.laid, plan.framework, number) for number in range(plan.laid.plan.pp))


def between(layout: Layout, stages: Sequence[Stage], exchanges: Exchanges) -> list[Cost]:
    """What all copies of each stage exchange, whole; nothing where they are so many that it is worked out in columns."""
    found: list[Cost] = []
    if layout.laid.gpus // len(stages) >= LEAST:
        return found
    for number, stage in enumerate(stages):
        for item in (*stage.gathered, *exchanges_in(stage.ending)):
            shards = layout.laid.shards if item.name == "weights" else layout.laid.dp
            found.append(exchanges.cost(layout.across(number, shards), item.operation, item.size))
    return found


class Teams:
    """Costs of one training; they go into the builder."""

    def __init__(
        self,
        plan: Planned,
        layout: Layout,
        builder: GraphBuilder,
        kinds: Kinds,
        exchanges: Exchanges,
        *,
        copies: Sequence[int],
        layered: bool,
        buckets: int | None,
    ) -> None:
        """copies: those that are told, each for as many as there are copies for each of them.  layered: ops of layers."""
        self.laid, self.framework, self.layout, self.copies = plan.laid, plan.framework, layout, copies
        self.stages = stages(plan)
        self.inside: dict[int, float] = {}  # of costs of ops, the part of their time that is a collective
        self._builder, self.kinds, self._exchanges = builder, kinds, exchanges
        self._layered, self._buckets = layered, buckets
        self._whole = len(copies) == self.laid.dp
        self._segments: dict[tuple[int, int, bool, bool, int, int], tuple[Segment, ...]] = {}
        self._recipes: dict[tuple[object, ...], Sequence[tuple[Spent, Exchange | None]]] = {}
        self._neighbours: dict[tuple[int, int], tuple[int, ...]] = {}
        self._parts: dict[tuple[int, float, str], Cost] = {}
        self._sent: dict[tuple[int, int, int], int] = {}  # by stages and copy
        self._indices: dict[int, int] = {}  # by id of such a part
        self._whole_costs: list[Cost] = []
        self._groups: dict[tuple[int, int], tuple[Names, ...]] = {}
        self._told: frozenset[str] | None = None

    def kernel(self, kernel: Kernel, team: Names, waiting: float = 0.0) -> int:
        """A kernel on each GPU of a team, and so many seconds of the host after it."""
        spent = self.kinds.run((kernel,), self.kinds.among(team))
        return self.cost(spent.and_then(Spent({"host": waiting})) if waiting > 0 else spent, team)

    def overlaps(self, stage: int) -> bool:
        """Whether gradients are exchanged while the last micro-batch goes back."""
        each = self.gradients(stage)
        return each is not None and each.exposed < 1.0

    def gradients(self, stage: int) -> Exchange | None:
        """Their exchange at the end of a step, in as many buckets as the last backward pass has pieces."""
        found = next((each for each in exchanges_in(self.stages[stage].ending) if each.name == "gradients"), None)
        if found is None or found.exposed >= 1.0:
            return found
        return hiding.in_buckets(found, self.laid.plan.chunks * hiding.pieces(self.laid, stage, self._buckets))

    def cut(self, stage: int, *, last: bool) -> int:
        """Pieces of a turn."""
        if self.stages[stage].gathered or (last and self.overlaps(stage)):
            return hiding.pieces(self.laid, stage, self._buckets)
        return 1

    def segments(self, stage: int, turn: Turn, last: bool, number: int, copy: int) -> tuple[Segment, ...]:
        """The ops of one piece of a turn on one team."""
        key = (stage, turn.chunk, turn.forward, last, number, copy)
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = tuple(self._made_of(stage, turn, last, number, copy))
        return found

    def _made_of(self, stage: int, turn: Turn, last: bool, number: int, copy: int) -> list[Segment]:
        """What the copy does, and what those do beside it that it speaks for."""
        near = self._near(stage, copy)
        done = [self._done(stage, turn, last, number, each, alone=each == copy) for each in near]
        found: list[Segment] = []
        for place, (name, kind, queue, cost, inside) in enumerate(done[near.index(copy)]):
            others = [each[place][3] for each, one in zip(done, near, strict=True) if one != copy]
            far = self._waits(stage, turn, last) if queue == "compute" and place == len(done[0]) - 1 else Spent()
            many = 0 if self._whole else self.laid.dp - len(near)
            index = self._builder.cost(beside(cost, others, far.cost((), self._exchanges.is_wire, 1.0), many))
            if inside > 0:
                self.inside[index] = inside
            found.append(Segment(name, kind, index, queue))
        return found

    def _done(
        self, stage: int, turn: Turn, last: bool, number: int, copy: int, *, alone: bool
    ) -> list[tuple[str, str, str, Cost, float]]:
        """(name, kind, queue, cost, part that is a collective) of what one copy does; beside another, but for its kernels."""
        name = "forward" if turn.forward else "backward"
        team = self.layout.team(stage, copy)
        found: list[tuple[str, str, str, Cost, float]] = []
        spent = Spent()

        def compute() -> None:
            own = spent if alone else replace(spent, each=())
            cost = self._cost(own, team)
            found.append((name, name, "compute", cost, spent.collecting / spent.total if spent.collecting > 0 else 0.0))

        for computed, item in self._recipe(stage, turn, last, number, self.kinds.among(team)):
            spent = spent.and_then(computed)
            if item is None:
                continue
            cost, part = self._inside(item, stage, copy), item.times
            if item.axis == "ep":  # every one of the copies that split the experts has its part in it
                part /= self.laid.plan.ep
            elif self._layered:
                if any(map(any, spent.each)):
                    compute()
                    spent = Spent()
                waited = item.times * item.exposed
                found.append((f"{item.name} ({item.axis})", item.operation, item.axis, self._scaled(cost, waited), 0.0))
                spent = spent.and_then(self._exchanges.spent(cost, item.axis, 0.0, item.times - waited))
                continue
            spent = spent.and_then(self._exchanges.spent(cost, item.axis, item.times * item.exposed, part))
        spent = spent.and_then(self._waits(stage, turn, last))
        compute()
        return found

    def _waits(self, stage: int, turn: Turn, last: bool) -> Spent:
        """What the computing of a piece waits for of exchanges between copies: of what they draw, each copy draws its part."""
        spent = Spent()
        count = self.cut(stage, last=last)
        for each, exposed in self._awaited(stage, forward=turn.forward):
            cost = self.exchanging(stage, each, count)
            spent = spent.and_then(self._exchanges.spent(cost, "dp", exposed, exposed / self.laid.dp))
        return spent

    def _recipe(
        self, stage: int, turn: Turn, last: bool, number: int, among: tuple[int, ...]
    ) -> Sequence[tuple[Spent, Exchange | None]]:
        """What is computed, and the collective that follows it, again and again: the same on all copies of these kinds."""
        key = (stage, turn.chunk, turn.forward, last, number, among)
        found = self._recipes.get(key)
        if found is None:
            cut = pieces(self.stages[stage], self.laid, turn.chunk, forward=turn.forward, count=self.cut(stage, last=last))
            found = self._recipes[key] = (self._layers if self._layered else self._at_once)(cut[number], among)
        return found

    def _layers(self, piece: Piece, among: tuple[int, ...]) -> list[tuple[Spent, Exchange | None]]:
        """Layer by layer."""
        found: list[tuple[Spent, Exchange | None]] = []
        run: list[Kernel] = []
        for items in piece.runs():
            for item in items:
                if isinstance(item, Kernel):
                    run.append(item)
                else:
                    found.append((self.kinds.run(run, among), item))
                    run = []
        return [*found, (self.kinds.run(run, among), None)]

    def _at_once(self, piece: Piece, among: tuple[int, ...]) -> list[tuple[Spent, Exchange | None]]:
        """All layers as one."""
        spent, found = Spent(), dict[Exchange, float]()
        for items, times in piece.groups:
            spent = spent.and_then(self.kinds.between(items, among), times)
            for each in exchanges_in(items):
                found[each] = found.get(each, 0.0) + times
        return [(spent, None), *((Spent(), replace(each, times=each.times * times)) for each, times in found.items())]

    def _awaited(self, stage: int, *, forward: bool) -> list[tuple[Exchange, float]]:
        """Collectives of sharded weights that the computing of a piece partly waits for."""
        if not self.stages[stage].gathered:
            return []
        weights, gradients = self.stages[stage].gathered
        times = 1.0 if forward else max(1.0, weights.times - 1.0)
        return [(weights, weights.exposed * times), *([] if forward else [(gradients, gradients.exposed)])]

    def _inside(self, item: Exchange, stage: int, copy: int) -> Cost:
        """A collective of a team."""
        return self._exchanges.cost(self.layout.groups(item.axis, stage, copy), item.operation, item.size)

    def sending(self, stage: int, target: int, copy: int) -> int:
        """Index of the cost of a send from one stage of a copy to another, beside those of the copies it speaks for."""
        found = self._sent.get((stage, target, copy))
        if found is None:
            near = dict.fromkeys((*self._near(stage, copy), *self._near(target, copy)))
            others = [self._sends(stage, target, each) for each in near if each != copy]
            found = self._sent[stage, target, copy] = self._builder.cost(beside(self._sends(stage, target, copy), others))
        return found

    def _sends(self, stage: int, target: int, copy: int) -> Cost:
        pairs = tuple(zip(self.layout.team(stage, copy), self.layout.team(target, copy), strict=True))
        return self._exchanges.cost(pairs, "send", self.stages[stage].passed)

    def _near(self, stage: int, copy: int) -> tuple[int, ...]:
        """Copies that a copy speaks for which have devices on the same nodes: they share links inside them."""
        if self._whole:
            return (copy,)
        found = self._neighbours.get((stage, copy))
        if found is None:
            size = self.laid.plan.ep  # copies that split the experts exchange as one

            def nodes(one: int) -> set[int]:
                first = one // size * size
                return {node for each in range(first, first + size) for node in self.layout.nodes(stage, each)}

            here = nodes(copy)
            found = tuple(each for each in range(self.laid.dp) if here & nodes(each))
            self._neighbours[stage, copy] = found
        return found

    def _across(self, stage: int, size: int) -> tuple[Names, ...]:
        if (stage, size) not in self._groups:
            self._groups[stage, size] = self.layout.across(stage, size)
        return self._groups[stage, size]

    def exchanging(self, stage: int, each: Exchange, count: float = 1.0) -> Cost:
        """A collective of all copies of a stage, one of `count` pieces."""
        shards = self.laid.shards if each.name == "weights" else self.laid.dp
        groups = self._across(stage, shards)
        if not self._whole and len(groups) * shards >= LEAST:
            return self._exchanges.told(groups, self._across(0, shards)[0], each.operation, each.size / count)
        cost = self._exchanges.cost(groups, each.operation, each.size / count)
        return cost if self._whole else restricted(cost, self._telling())

    def _telling(self) -> frozenset[str]:
        """Capacities that tell how long the exchanges between copies take: those that a team uses otherwise, too, and one
        of all on which the same is drawn.
        """
        if self._told is None:
            used: set[str] = set()
            for stage in range(len(self.stages)):
                copy = self.copies[0]
                layer = self.stages[stage].layer
                for item in dict.fromkeys(exchanges_in((*layer.forward, *layer.backward))):
                    used.update(name for name, _ in self._inside(item, stage, copy).demand.amounts)
                for target in {stage - 1, stage + 1} & set(range(len(self.stages))):
                    used.update(name for name, _ in self._sends(stage, target, copy).demand.amounts)
                used.update(f"{name}.{what}" for name in self.layout.team(stage, copy) for what in ("compute", "memory"))
            drawn: dict[str, list[tuple[int, float]]] = {}
            for number, cost in enumerate(between(self.layout, self.stages, self._exchanges)):
                for name, amount in cost.demand.amounts:
                    drawn.setdefault(name, []).append((number, amount))
            rates = self._exchanges.rates
            alike: dict[tuple[float, tuple[tuple[int, float], ...]], str] = {}
            for name, amounts in drawn.items():
                alike.setdefault((rates[name], tuple(amounts)), name)
            self._told = frozenset(used | set(alike.values()))
        return self._told

    def cost(self, spent: Spent, team: Names) -> int:
        """Index of the cost of an op of a team."""
        return self._builder.cost(self._cost(spent, team))

    def _cost(self, spent: Spent, team: Names) -> Cost:
        return spent.cost(
            team, self._exchanges.is_wire, self.kinds.bandwidth(team), self.kinds.places(team) if spent.each else ()
        )

    def scaled(self, cost: Cost, part: float, which: str = EXPOSED) -> int:
        """Index of a part of a cost, made once.  which: what part, in words."""
        key = id(self._scaled(cost, part, which))
        if key not in self._indices:
            self._indices[key] = self._builder.cost(self._scaled(cost, part, which))
        return self._indices[key]

    def _scaled(self, cost: Cost, part: float, which: str = EXPOSED) -> Cost:
        found = self._parts.get((id(cost), part, which))  # to hash all it draws takes longer than to make it
        if found is None:
            found = self._parts[id(cost), part, which] = cost if part == 1.0 else scaled(cost, part, which)
            self._whole_costs.append(cost)  # an id is one's own as long as one lives
        return found
