"""The trees of programs -> statements in which every name is known and every op has its cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hwsim.devices import CannotCompute
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.ops import OPS, AnyOp, CannotPlace
from hwsim.spec import Mistakes, Place, Tree, Value, decode, did_you_mean, field, place_field, substitute
from hwsim.workload.builder import FEMTO, GraphBuilder
from hwsim.workload.file import Each, Runtime
from hwsim.workload.names import Mention, Names, Path, Stand
from hwsim.workload.programs import Program, Queues, find_programs
from hwsim.workload.statements import Barrier, Issue, PlacedOp, Repeat, Statement, Wait

_CONTROL: Final = ("barrier", "repeat", "wait")


@dataclass(frozen=True, slots=True)
class RepeatKeys:
    """`repeat`: statements in a loop."""

    times: int = field("how often", minimum=0)
    do: tuple[Tree, ...] = field("the statements", one_or_many=True)
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class WaitKeys:
    """`wait`: the program goes on once these have ended; `wait: all` for all it has issued."""

    name: tuple[str, ...] = field("ops or values", one_or_many=True)
    back: int = field("iterations ago, of the innermost repeat that holds the op", default=0, minimum=0)


@dataclass(frozen=True, slots=True)
class BarrierKeys:
    """`barrier`: every program that names it waits until all have come and all they issued before has ended."""

    name: str = field("the same in all programs that meet")


STATEMENTS: Final[dict[str, type]] = {"barrier": BarrierKeys, "repeat": RepeatKeys, "wait": WaitKeys}


@dataclass(frozen=True, slots=True)
class Group:
    """The programs of one `each` (or a single one), side by side; hosts are the queues of their threads."""

    name: str
    programs: tuple[Program, ...]
    hosts: tuple[int, ...]
    body: tuple[Statement, ...]


def read_group(
    name: str, tree: Tree, machine: Machine, runtime: Runtime | None, builder: GraphBuilder, mistakes: Mistakes
) -> Group:
    """One program, or one per device of `each`.  Labels, costs and queues go into the builder."""
    each: Each | None = None
    statements: Sequence[Tree] = tree.elements()
    if tree.get("each") is not None:
        each = decode(tree, Each, mistakes)
        if each is None:
            return Group(name, (), (), ())
        statements = each.do
    programs = find_programs(name, tree, each, machine, mistakes)
    if not programs:
        return Group(name, (), (), ())
    queues = Queues(builder, runtime)
    hosts = tuple(queues.host(program) for program in programs)
    reader = _Reader(programs, runtime, builder, queues, mistakes)
    body = reader.body(statements, ())
    reader.names.look_up(mistakes)
    return Group(name, programs, hosts, body)


class _Reader:
    """Reads the statements of one group; mistakes are noted, and what can be read is."""

    def __init__(
        self, programs: Sequence[Program], runtime: Runtime | None, builder: GraphBuilder, queues: Queues, mistakes: Mistakes
    ) -> None:
        self.names = Names()
        self._programs = programs
        self._runtime = runtime
        self._builder = builder
        self._queues = queues
        self._mistakes = mistakes
        self._statements = 0
        self._repeats = 0

    def body(self, trees: Sequence[Tree], path: Path) -> tuple[Statement, ...]:
        found = [self._statement(tree, path) for tree in trees]
        return tuple(each for each in found if each is not None)

    def _statement(self, tree: Tree, path: Path) -> Statement | None:
        if not isinstance(tree.value, dict) or len(tree.value) != 1:
            self._no_statement(tree)
            return None
        [(kind, content)] = tree.value.items()
        self._statements += 1
        match kind:
            case "repeat":
                return self._repeat(content, path)
            case "wait":
                return self._wait(content, Stand(self._statements, path))
            case "barrier":
                return self._barrier(content)
            case _ if kind in OPS:
                return self._issue(kind, content, Stand(self._statements, path))
            case _:
                known = did_you_mean(kind, [*OPS, *_CONTROL])
                self._mistakes.add(tree.key_place(kind), f"there is no op or statement '{kind}'", known)
                return None

    def _no_statement(self, tree: Tree) -> None:
        if isinstance(tree.value, dict) and tree.value:
            keys = ", ".join(f"'{key}'" for key in list(tree.value)[:4])
            message = f"a statement is one key and what belongs to it, not {keys} together"
            self._mistakes.add(tree.place, message, "begin each statement with '- ', and put an op's keys inside its braces")
        else:
            self._mistakes.add(tree.place, f"a statement is a mapping such as `wait: all`, not {tree.what()}")

    # ---- control

    def _repeat(self, tree: Tree, path: Path) -> Repeat | None:
        self._repeats += 1
        inside = (*path, self._repeats)
        times = tree.get("times")
        if times is not None and isinstance(times.value, str):  # may depend on how many ranks there are, not on which this is
            tree = tree.put("times", substitute(times, {"ranks": len(self._programs)}, self._mistakes, keep=()))
        keys = decode(tree, RepeatKeys, self._mistakes)
        if keys is None:  # what is wrong inside is said all the same
            do = tree.get("do")
            self.body(do.elements() if do else (), inside)
            return None
        return Repeat(keys.times, self.body(keys.do, inside), tree.place)

    def _wait(self, tree: Tree, here: Stand) -> Wait | None:
        if tree.value == "all":
            return Wait((), 0, self._back_labels("all"))
        keys = decode(_by_name(tree), WaitKeys, self._mistakes)
        if keys is None:
            return None
        at = tree.get("name") or tree
        self.names.mentions += [Mention(name, at.place, here, values=not keys.back, back=keys.back > 0) for name in keys.name]
        return Wait(keys.name, keys.back, self._back_labels(", ".join(keys.name)))

    def _barrier(self, tree: Tree) -> Barrier | None:
        keys = decode(_by_name(tree), BarrierKeys, self._mistakes)
        if keys is None:
            return None
        arrival, release = (self._builder.label(keys.name, kind, "", self._programs[0].name) for kind in ("barrier", "release"))
        return Barrier(keys.name, (arrival, release, *self._back_labels(keys.name)), tree.place)

    def _back_labels(self, name: str) -> tuple[int, ...]:
        return tuple(self._back_label(name, program) for program in self._programs)

    def _back_label(self, name: str, program: Program) -> int:
        kind, device = ("return", program.scope.host) if self._runtime else ("wait", "")
        return self._builder.label(name, kind, device, program.name)

    # ---- ops

    def _issue(self, kind: str, tree: Tree, here: Stand) -> Issue | None:
        self.names.ops.setdefault(tree.text("name") or kind, []).append(here)  # also where the op is wrong
        ranked = _ranked(tree)
        if ranked is not None and not self._programs[0].own:
            self._mistakes.add(ranked.place, f"{ranked.what()} has a meaning only under `each`")
            return None
        op: AnyOp | None = None
        found: list[PlacedOp] = []
        for rank, program in enumerate(self._programs):
            if ranked is not None or rank == 0:
                op = self._decode(kind, tree, rank, program)
                self._note(op, tree, here)
            placed = None if op is None else self._place(op, kind, program)
            if placed is None:
                return None  # the other ranks would only say the same
            found.append(placed)
        return Issue(tuple(found))

    def _decode(self, kind: str, tree: Tree, rank: int, program: Program) -> AnyOp | None:
        names: Mapping[str, Value] = {"self": program.own, "rank": rank, "ranks": len(self._programs)}
        cls: Any = OPS[kind]
        before = len(self._mistakes)
        known = substitute(tree, names, self._mistakes, keep=())
        op: AnyOp | None = decode(known, cls, self._mistakes) if len(self._mistakes) == before else None
        if op is not None and op.queue == "host":
            at = tree.get("queue") or tree
            self._mistakes.add(at.place, "the queue 'host' is the program's own thread", "choose another name")
            return None
        return op

    def _note(self, op: AnyOp | None, tree: Tree, here: Stand) -> None:
        """What the op defines, and what it asks for."""
        if op is None:
            return
        for value in (*op.writes, *op.updates):
            self.names.values.setdefault(value, []).append(here)
        after = tree.get("after") or tree
        self.names.mentions += [Mention(name, after.place, here) for name in op.after]

    def _place(self, op: AnyOp, kind: str, program: Program) -> PlacedOp | None:
        try:
            placed = op.lower(program.scope)
        except (CannotCompute, CannotPlace, NoRoute, UnknownName) as error:
            self._mistakes.add(op.place, error.message, error.hint)
            return None
        label, name = self._builder.label, op.name or kind
        threaded = self._runtime is not None
        return PlacedOp(
            name=name,
            label=label(name, kind, placed.device, program.name),
            dispatch=label(name, "dispatch", program.scope.host, program.name) if threaded else -1,
            insert=label(name, "insert", "", program.name) if threaded else -1,
            back=self._back_label(name, program) if op.block else -1,
            queue=self._queues.of(program, placed),
            cost=self._builder.cost(placed.cost),
            time=round(placed.time * FEMTO),
            pieces=placed.pieces,
            reads=op.reads,
            writes=op.writes,
            updates=op.updates,
            after=op.after,
            block=op.block,
        )


def _by_name(tree: Tree) -> Tree:
    """`wait: x` is short for `wait: {name: x}`."""
    return tree if tree.is_mapping else Tree({"name": tree}, tree.place)


def _ranked(tree: Tree) -> Tree | None:
    """The first text in it that mentions $self, $rank or $ranks."""
    if isinstance(tree.value, str):
        return tree if "$" in tree.value else None
    inside = tree.value.values() if isinstance(tree.value, dict) else tree.value if isinstance(tree.value, list) else ()
    return next((found for each in inside if (found := _ranked(each)) is not None), None)
