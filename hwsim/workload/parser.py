"""Parser of programs: YAML trees -> statements with resolved names and costs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine, UnknownName
from hwsim.ops import OPS, ExchangeOp, FetchOp, Op
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Tree, decode, did_you_mean, field, mentions, place_field, substitute
from hwsim.workload.collectives import CollectiveBuilder
from hwsim.workload.file import RankProgram, Rules
from hwsim.workload.groups import RankGroups
from hwsim.workload.names import Mention, NameTable, Path, StatementPosition
from hwsim.workload.placement import OpPlacer
from hwsim.workload.programs import Program, Queues, find_programs
from hwsim.workload.statements import (
    Barrier,
    CallStatement,
    CollectiveStatement,
    Fetch,
    Issue,
    PlacedOp,
    Receive,
    Repeat,
    Statement,
    WaitStatement,
    size_of,
    walk,
)

_RANKED: Final = re.compile(r"\$(self|ranks?)\b")
_CONTROL: Final = ("barrier", "call", "recv", "repeat", "wait")
_BRANCHES: Final = ("if", "else", "for", "while")
_BRANCH: Final = (
    "`repeat: {times: $flag, do: [...]}` is a loop, or with 0 or 1 a branch that a parameter decides. If a value decides, write "
    "`item: VALUE` before it, outside a `call`"
)
_EACH: Final = "a program for each device is `program: {each: gpu*, do: [...]}`; `repeat: {times: 4, do: [...]}` is a loop"


@dataclass(frozen=True, slots=True)
class RepeatKeys:
    """A loop: `repeat` runs its statements several times."""

    times: int = field("number of iterations", minimum=0)
    do: tuple[Tree, ...] = field("statements of the loop body", one_or_many=True)
    place: Place = place_field()


@dataclass(frozen=True, slots=True)
class WaitKeys:
    """A wait: the program continues once the named ops have ended; `wait: all` waits for all ops that it has issued."""

    name: tuple[str, ...] = field("names of the ops or values that the program waits for", one_or_many=True)
    back: int = field("wait for the op of this many iterations ago, in the innermost repeat around the op", default=0, minimum=0)


@dataclass(frozen=True, slots=True)
class BarrierKeys:
    """A barrier: its programs wait until each of them has reached it and all ops that they issued before have ended."""

    name: str = field("name of the barrier, equal in all programs that meet")


@dataclass(frozen=True, slots=True)
class RecvKeys:
    """A receive: the program continues once the earliest `send` to its $self that it has not yet received has arrived."""

    source: str = field("$self of the sending program", key="from", example="gpu[($rank - 1) mod $ranks]")


@dataclass(frozen=True, slots=True)
class CallKeys:
    """A call of a body that the runtime compiles and starts as a whole; a runtime without `call` issues its ops one by one."""

    do: tuple[Tree, ...] = field("statements of the body", one_or_many=True)
    name: str = field("name of the call in the results", default="call")


STATEMENTS: Final[dict[str, type]] = {
    "barrier": BarrierKeys,
    "call": CallKeys,
    "recv": RecvKeys,
    "repeat": RepeatKeys,
    "wait": WaitKeys,
}


@dataclass(frozen=True, slots=True)
class ProgramGroup:
    """The programs of one `each`, or a single program, with their common statements.

    Args:
        hosts: queue of each program's thread.
        body: statements, with one op per rank.
        starts: label of each program's start.
        start: start time of the programs (fs).
    """

    name: str
    programs: tuple[Program, ...]
    hosts: tuple[int, ...]
    body: tuple[Statement, ...]
    starts: tuple[int, ...] = ()
    start: int = 0


def read_group(
    name: str,
    tree: Tree,
    machine: Machine,
    rules: Rules | None,
    groups: Mapping[str, RankGroups],
    builder: GraphBuilder,
    mistakes: Mistakes,
    only: int | None = None,
) -> ProgramGroup:
    """Read one program, or one program per device of `each`; add labels, costs and queues to the builder.

    Args:
        only: rank whose program is read without the other ranks, for the names of its ops; its collectives have no other members.
    """
    ranks_of: RankProgram | None = None
    statements: Sequence[Tree] = tree.elements()
    if tree.get("each") is not None:
        ranks_of = decode(tree, RankProgram, mistakes)
        if ranks_of is None:
            return ProgramGroup(name, (), (), ())
        statements = ranks_of.do
    programs = find_programs(name, tree, ranks_of, machine, mistakes, only)
    if not programs:
        return ProgramGroup(name, (), (), ())
    queues = Queues(builder, rules)
    hosts = tuple(queues.host(program) for program in programs)
    placing = OpPlacer(rules, builder, queues, mistakes)
    reader = _StatementParser(programs, placing, groups)
    body = reader.body(statements, ())
    if placing.looks_back():  # read again with the locations of all values known
        reader = _StatementParser(programs, placing, groups)
        body = reader.body(statements, ())
    reader.names.look_up(mistakes)
    if rules is not None and rules.fuse == "elementwise" and not len(mistakes):
        from hwsim.workload.fuse import fuse

        body = fuse(body, programs, builder, rules.starts)
    starts = tuple(builder.label("start", "start", "", program.name) for program in programs)
    return ProgramGroup(name, programs, hosts, body, starts)


class _StatementParser:
    """A parser of the statements of one group; it adds each mistake and continues with the next statement."""

    def __init__(self, programs: Sequence[Program], placing: OpPlacer, groups: Mapping[str, RankGroups]) -> None:
        self.names = NameTable()
        self._gatherings = CollectiveBuilder(programs, placing, groups)
        self._pieces: dict[str, int] = {}  # pieces of the latest op of each name
        self._programs = programs
        self._placing = placing
        self._mistakes = placing.mistakes
        self._statements = 0
        self._repeats = 0
        self._calls = 0
        self._call = -1  # number of the compiled body being read
        self._layers = 0  # bodies around the statement being read that are not compiled
        self._awaited: dict[str, None] = {}  # names of its ops that the runtime waits for

    def body(self, trees: Sequence[Tree], path: Path) -> tuple[Statement, ...]:
        return tuple(statement for tree in trees for statement in self._statements_of(tree, path))

    def _statements_of(self, tree: Tree, path: Path) -> tuple[Statement, ...]:
        """The statements of one entry of the file; a `call` becomes several statements."""
        if tree.get("call") is not None and len(tree.items()) == 1:
            return self._call_of(tree.get("call") or tree, path)
        statement = self._statement(tree, path)
        return () if statement is None else (statement,)

    def _statement(self, tree: Tree, path: Path) -> Statement | None:
        if not isinstance(tree.value, dict) or len(tree.value) != 1:
            self._no_statement(tree)
            return None
        [(kind, content)] = tree.value.items()
        self._statements += 1
        if self._call >= 0 and kind in ("wait", "barrier", "recv", "item", "asnumpy"):
            message = f"`{kind}` cannot be part of a compiled `call`, whose ops run without the program's thread"
            self._mistakes.add(tree.key_place(kind), message, "move it after the `call`, or use a runtime that does not compile")
            return None
        match kind:
            case "repeat":
                return self._repeat(content, path)
            case "wait":
                return self._wait(content, StatementPosition(self._statements, path))
            case "barrier":
                return self._barrier(content)
            case "recv":
                return self._receive(content)
            case _ if kind in OPS:
                return self._issue(kind, content, StatementPosition(self._statements, path))
            case _:
                hint = _BRANCH if kind in _BRANCHES else _EACH if kind == "each" else did_you_mean(kind, [*OPS, *_CONTROL])
                self._mistakes.add(tree.key_place(kind), f"there is no op or statement '{kind}'", hint)
                return None

    def _no_statement(self, tree: Tree) -> None:
        if isinstance(tree.value, dict) and tree.value:
            keys = ", ".join(f"'{key}'" for key in list(tree.value)[:4])
            message = f"a statement is a mapping with one key, got {keys}"
            hint = _EACH if "each" in tree.value else "begin each statement with '- ', and put an op's keys inside its braces"
            self._mistakes.add(tree.place, message, hint)
        else:
            self._mistakes.add(tree.place, f"expected a statement such as `wait: all`, got {tree.what()}")

    # ---- control

    def _repeat(self, tree: Tree, path: Path) -> Repeat | None:
        self._repeats += 1
        inside = (*path, self._repeats)
        times = tree.get("times")
        if times is not None and isinstance(times.value, str):  # may depend on the number of ranks, not on the rank
            tree = tree.put("times", substitute(times, {"ranks": self._programs[0].ranks}, self._mistakes, keep=()))
        keys = decode(tree, RepeatKeys, self._mistakes)
        if keys is None:  # report the mistakes of the body too
            do = tree.get("do")
            self.body(do.elements() if do else (), inside)
            return None
        self._placing.never += keys.times == 0
        body = self.body(keys.do, inside)
        self._placing.never -= keys.times == 0
        return Repeat(keys.times, body, tree.place)

    def _call_of(self, tree: Tree, path: Path) -> tuple[Statement, ...]:
        keys = decode(tree, CallKeys, self._mistakes)
        if keys is None:
            do = tree.get("do")
            self.body(do.elements() if do else (), path)
            return ()
        if self._call >= 0:
            return self.body(keys.do, path)
        if not self._placing.compiles:
            self._layers += 1
            body = self.body(keys.do, path)
            self._layers -= 1
            return body
        self._call, self._calls, self._awaited = self._calls, self._calls + 1, {}
        body = self.body(keys.do, path)
        nodes = size_of(body) // len(self._programs) if self._placing.starts_graphs else 0
        call = CallStatement(self._call, self._placing.call_labels(keys.name, self._programs), nodes)
        self._call = -1
        awaited = tuple(self._awaited)
        end = (WaitStatement(awaited, 0, self._placing.back_labels(keys.name, self._programs)),) if awaited else ()
        return (call, *_used_up(body), *end)

    def _wait(self, tree: Tree, stand: StatementPosition) -> WaitStatement | None:
        if tree.value == "all":
            return WaitStatement((), 0, self._placing.back_labels("all", self._programs))
        keys = decode(_by_name(tree), WaitKeys, self._mistakes)
        if keys is None:
            return None
        place = (tree.get("name") or tree).place
        self.names.mentions += [Mention(name, place, stand, values=not keys.back, back=keys.back > 0) for name in keys.name]
        return WaitStatement(keys.name, keys.back, self._placing.back_labels(", ".join(keys.name), self._programs))

    def _barrier(self, tree: Tree) -> Barrier | None:
        keys = decode(_by_name(tree), BarrierKeys, self._mistakes)
        if keys is None:
            return None
        label = self._placing.builder.label
        arrival, release = (label(keys.name, kind, "", self._programs[0].name) for kind in ("barrier", "release"))
        return Barrier(keys.name, (arrival, release, *self._placing.back_labels(keys.name, self._programs)), tree.place)

    def _receive(self, tree: Tree) -> Receive | None:
        if not self._programs[0].own:
            self._mistakes.add(tree.place, "`recv` is valid only in a program with `each`", "barrier: NAME")
            return None
        rank_of = {program.own: rank for rank, program in enumerate(self._programs)}
        tree = tree if tree.is_mapping else Tree({"from": tree}, tree.place)  # `recv: gpu[...]` is short for `recv: {from: ...}`
        senders: list[int] = []
        for program in self._programs:
            before = len(self._mistakes)
            filled = substitute(tree, program.values, self._mistakes, keep=())
            keys = decode(filled, RecvKeys, self._mistakes) if len(self._mistakes) == before else None
            if keys is None:
                return None  # the other ranks have the same mistake
            try:
                sender = program.scope.one(keys.source)
            except UnknownName as error:
                self._mistakes.add((tree.get("from") or tree).place, error.message, error.hint)
                return None
            if sender not in rank_of:
                self._mistakes.add((tree.get("from") or tree).place, f"no program of this `each` runs on {sender}")
                return None
            senders.append(rank_of[sender])
        owners = tuple(rank_of)
        pairs = zip(self._programs, senders, strict=True)
        labels = tuple(self._placing.back_label(f"recv from {owners[sender]}", program) for program, sender in pairs)
        return Receive(tuple(senders), owners, labels, tree.place)

    # ---- ops

    def _issue(self, kind: str, tree: Tree, stand: StatementPosition) -> Issue | Fetch | CollectiveStatement | None:
        fetches = issubclass(OPS[kind], FetchOp)
        if fetches and not tree.is_mapping:  # `print: y` is short for `print: {reads: y}`
            tree = Tree({"reads": tree}, tree.place)
        self.names.ops.setdefault(tree.text("name") or kind, []).append(stand)  # even if the op has a mistake
        written_out = not mentions(tree)
        ranked = None if written_out else _ranked(tree)
        if ranked is not None and not self._programs[0].own:
            self._mistakes.add(ranked.place, f"{ranked.what()} is valid only in a program with `each`")
            return None
        op: Op | None = None
        ops: list[Op] = []
        placed_ops: list[PlacedOp] = []
        for rank, program in enumerate(self._programs):
            if ranked is not None or rank == 0:
                op = self._decode(kind, tree, program, written_out=written_out)
                self._note(op, tree, stand)
            placed = None if op is None else self._placing.place(op, kind, program, self._call, self._layers > 0)
            if op is None or placed is None:
                return None  # the other ranks have the same mistake
            ops.append(op)
            placed_ops.append(placed if self._call < 0 else self._compiled(placed, op))
        self._pieces[placed_ops[0].name] = placed_ops[0].pieces if tree.get("pieces") else 0
        if isinstance(op, ExchangeOp):
            return self._collective([op for op in ops if isinstance(op, ExchangeOp)], placed_ops, kind, tree)
        if fetches:
            return Fetch(tuple(placed_ops)) if self._call < 0 else None  # a compiled body prints only while it is compiled
        return Issue(tuple(placed_ops))

    def _collective(
        self, ops: Sequence[ExchangeOp], placed: Sequence[PlacedOp], kind: str, tree: Tree
    ) -> CollectiveStatement | None:
        over = ops[0].overlaps
        pieces = self._pieces.get(over, 0) if over else 1
        if not pieces:
            message = f"op '{over}' has no `pieces`" if over in self._pieces else f"no op '{over}' precedes this"
            self._mistakes.add((tree.get("overlaps") or tree).place, f"`overlaps`: {message}", f"pieces: 8 at the op '{over}'")
            return None
        return self._gatherings.collective(ops, placed, kind, pieces)

    def _compiled(self, placed: PlacedOp, op: Op | None) -> PlacedOp:
        """Move a wait for an op of a compiled body to the call as a whole, unless the runtime's interpreter issues the ops."""
        if op is not None and op.block:
            self._mistakes.add(op.place, "`block` is not valid in a compiled `call`", "put a `wait` after the `call`")
        if placed.block and self._placing.issues and placed.pool < 0:
            return placed
        if placed.block:
            self._awaited[placed.name] = None
        return replace(placed, block=False)

    def _decode(self, kind: str, tree: Tree, program: Program, *, written_out: bool) -> Op | None:
        """Decode an op; `written_out`: no text of the tree contains a parameter."""
        cls: Any = OPS[kind]
        before = len(self._mistakes)
        filled = tree if written_out else substitute(tree, program.values, self._mistakes, keep=())
        op: Op | None = decode(filled, cls, self._mistakes) if len(self._mistakes) == before else None
        if op is not None and op.queue == "host":
            place = (tree.get("queue") or tree).place
            self._mistakes.add(place, "queue name 'host' is reserved for the program's thread", "choose another name")
            return None
        return op

    def _note(self, op: Op | None, tree: Tree, stand: StatementPosition) -> None:
        """Add the names that the op defines and mentions."""
        if op is None:
            return
        for value in (*op.writes, *op.updates):
            self.names.values.setdefault(value, []).append(stand)
        after = tree.get("after") or tree
        self.names.mentions += [Mention(name, after.place, stand) for name in op.after]


def _used_up(body: Sequence[Statement]) -> tuple[Statement, ...]:
    """Set `inner` of the ops of a compiled body: values that the body both writes and reads."""
    read: set[str] = set()
    for statement in walk(body):
        if isinstance(statement, Issue | CollectiveStatement):
            read.update(value for op in statement.ops for value in (*op.reads, *op.updates))

    def with_inner(statement: Statement) -> Statement:
        match statement:
            case Repeat():
                return replace(statement, body=tuple(with_inner(inside) for inside in statement.body))
            case Issue() | CollectiveStatement():
                return replace(statement, ops=tuple(replace(op, inner=frozenset(op.writes) & read) for op in statement.ops))
            case _:
                return statement

    return tuple(with_inner(statement) for statement in body)


def _by_name(tree: Tree) -> Tree:
    """`wait: x` is short for `wait: {name: x}`."""
    return tree if tree.is_mapping else Tree({"name": tree}, tree.place)


def _ranked(tree: Tree) -> Tree | None:
    """The first text of a tree that mentions $self, $rank or $ranks."""
    if isinstance(tree.value, str):
        return tree if _RANKED.search(tree.value) else None
    inside = tree.value.values() if isinstance(tree.value, dict) else tree.value if isinstance(tree.value, list) else ()
    return next((text for tree in inside if (text := _ranked(tree)) is not None), None)
