"""Plans of collectives: right on integers, and of as many steps and bytes as textbooks say."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.communication import (
    ALGORITHMS,
    KINDS,
    CannotCollect,
    CollectivePlan,
    Operation,
    PlanSend,
    RankGroup,
    WrongCollectivePlan,
    algorithms,
    execute,
    explicit_sends,
    prove,
)
from hwsim.communication.algorithms import Algorithm
from hwsim.communication.algorithms.double_tree import DoubleTree
from hwsim.communication.algorithms.hierarchical import Hierarchical
from hwsim.communication.algorithms.parameter_server import ParameterServer
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.rounds import rounds_of
from hwsim.spec import plan
from tests.each import each

CASES: list[tuple[str, Operation]] = [(name, op) for name, scheme in ALGORITHMS.items() for op in scheme.operations]
# Steps of an all-reduce among n ranks, and bytes on the busiest port, each way, in arrays of one rank.
TEXTBOOK: dict[str, Callable[[int], tuple[int, float]]] = {
    "ring": lambda n: (2 * (n - 1), 2 * (n - 1) / n),
    "ring-both-ways": lambda n: (2 * (n - 1), 2 * (n - 1) / n),
    "torus": lambda n: (max(2, 4 * math.isqrt(n) - 4), 2 * (n - 1) / n),
    "direct": lambda n: (2, 2 * (n - 1) / n),
    "halving-doubling": lambda n: (2 * n.bit_length() - 2, 2 * (n - 1) / n),
    "recursive-doubling": lambda n: (n.bit_length() - 1, n.bit_length() - 1),
    "binomial-tree": lambda n: (2 * n.bit_length() - 2, 2 * n.bit_length() - 2),
    "ps-gpu0": lambda n: (2, 2 * (n - 1)),
    "ps-cpu": lambda n: (2, 2 * n),
    "ps-sharded": lambda n: (2, 2 * (n - 1) / n),
}


def walk(plan: CollectivePlan, size: float, latency: float, port: float, weights: Sequence[float] = ()) -> float:
    """Seconds of a plan among equal ports if each step waits for all sends of the one before."""
    sizes = plan.sizes(size, weights)
    total = 0.0
    for step in plan.by_step():
        loads: dict[tuple[str, int], float] = defaultdict(float)
        for send in step:
            for end in (("out", send.source), ("into", send.target)):
                loads[end] += math.fsum(sizes[send.chunk : send.chunk + send.chunks])
        total += latency + max(loads.values()) / port
    return total


def planned(algorithm: Algorithm, operation: Operation, group: RankGroup) -> CollectivePlan:
    """The plan; a group that the algorithm says it cannot do is no case."""
    try:
        return algorithm.plan(operation, group)
    except CannotCollect:
        pytest.skip("not for this group")


@st.composite
def groups(draw: st.DrawFn, most: int = 33) -> RankGroup:
    """1 to 33 ranks, in one node, in equal nodes, in any nodes."""
    ranks = draw(st.integers(1, most))
    match draw(st.sampled_from(["one", "equal", "any"])):
        case "one":
            return RankGroup(ranks)
        case "equal":
            nodes = draw(st.sampled_from([index for index in range(1, ranks + 1) if ranks % index == 0]))
            return RankGroup(ranks, (ranks // nodes,) * nodes)
        case _:
            cuts = draw(st.lists(st.integers(1, ranks - 1), max_size=4, unique=True)) if ranks > 1 else []
            edges = [0, *sorted(cuts), ranks]
            return RankGroup(ranks, tuple(b - a for a, b in pairwise(edges)))


# ---- right


@pytest.mark.parametrize(("name", "operation"), CASES)
@given(group=groups())
@settings(max_examples=15, deadline=None)
def test_every_plan_does_what_its_operation_promises(name: str, operation: Operation, group: RankGroup) -> None:
    try:
        found = ALGORITHMS[name].plan(operation, group)
    except CannotCollect:
        assert name.startswith(("hierarchical", "torus"))
        return
    prove(found)


@each("ranks", [1, 2, 3, 7, 8, 12, 33])
@each("servers", [1, 2, 3, 7])
@each("on", ["workers", "beside"])
def test_parameter_servers_of_any_number_add_up(ranks: int, servers: int, on: str) -> None:
    algorithm = ParameterServer(servers=servers, on="beside" if on == "beside" else "workers")
    prove(planned(algorithm, "all-reduce", RankGroup(ranks)))


@given(orders=st.lists(st.permutations(range(7)), min_size=1, max_size=3), both=st.booleans(), channels=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_rings_of_any_order_and_number_add_up(orders: list[list[int]], both: bool, channels: int) -> None:
    widths = tuple(float(place + 1) for place in range(len(orders)))
    ring = RingAlgorithm(both=both, orders=tuple(tuple(order) for order in orders), widths=widths, channels=channels)
    for operation in ring.operations:
        found = ring.plan(operation, RankGroup(7))
        prove(found)
        assert sum(found.sizes(1.0)) == pytest.approx(1.0)


def test_a_plan_that_leaves_a_rank_out_is_found() -> None:
    wrong = CollectivePlan("all-reduce", 3, 1, (PlanSend(0, 1, 0, 0, 1, True), PlanSend(1, 0, 1, 0), PlanSend(1, 0, 2, 0)))
    with pytest.raises(WrongCollectivePlan, match=r"rank 0 ends with a sum with ranks 2 missing"):
        prove(wrong)


def test_a_plan_that_adds_a_rank_twice_is_found() -> None:
    wrong = CollectivePlan("reduce", 2, 1, (PlanSend(0, 1, 0, 0, 1, True), PlanSend(1, 1, 0, 0, 1, True)))
    with pytest.raises(WrongCollectivePlan, match=r"ranks 1 more than once"):
        prove(wrong)


@pytest.mark.parametrize(
    ("send", "message"),
    [
        (PlanSend(0, 0, 0, 0), "cannot send"),
        (PlanSend(0, 0, 5, 0), "cannot send"),
        (PlanSend(0, 0, 1, 3), "no chunks"),
        (PlanSend(0, 1, 0, 0), "does not have"),
    ],
)
def test_a_send_that_cannot_be_is_found(send: PlanSend, message: str) -> None:
    with pytest.raises(WrongCollectivePlan, match=message):
        execute(CollectivePlan("broadcast", 2, 1, (send,)), [{0: 1}, {}])


# ---- as fast as the textbook says


@each("name", TEXTBOOK)
@each("ranks", [2, 4, 16, 64])
def test_steps_and_bytes_of_a_plan_are_the_textbook_s(name: str, ranks: int) -> None:
    found = ALGORITHMS[name].plan("all-reduce", RankGroup(ranks))
    assert (found.steps, walk(found, 1.0, 0.0, 1.0)) == pytest.approx(TEXTBOOK[name](ranks))


@each(("name", "operation"), CASES)
def test_rounds_move_the_bytes_of_the_plan(name: str, operation: Operation) -> None:
    algorithm = ALGORITHMS[name]
    for group in (RankGroup(1), RankGroup(2), RankGroup(4), RankGroup(9), RankGroup(12, (4, 4, 4))):
        try:
            found = algorithm.plan(operation, group)
        except CannotCollect:
            continue
        wanted: dict[tuple[int, int], float] = defaultdict(float)
        shares = found.sizes(1.0)
        for send in found.sends:
            wanted[send.source, send.target] += sum(shares[send.chunk : send.chunk + send.chunks])
        told: dict[tuple[int, int], float] = defaultdict(float)
        for round_ in algorithm.rounds(operation, group):
            for source, target, share in round_.pairs:
                told[source, target] += round_.times * share
        moved, asked = ({pair: share for pair, share in traffic.items() if share > 0} for traffic in (told, wanted))
        assert moved == pytest.approx(asked), group


def test_rounds_of_a_ring_of_ten_thousand_ranks_are_two() -> None:
    rounds = RingAlgorithm().rounds("all-reduce", RankGroup(10_000))
    assert [(round_.steps, len(round_.pairs), round_.pairs[0][2]) for round_ in rounds] == [(9999, 10_000, 1e-4)] * 2


# ---- uneven sizes, single sends


@given(weights=st.lists(st.floats(0.1, 10.0), min_size=5, max_size=5), size=st.floats(1.0, 1e9))
def test_uneven_parts_add_up_and_the_largest_sets_the_pace_of_a_ring(weights: list[float], size: float) -> None:
    found = RingAlgorithm().plan("all-gather", RankGroup(5))
    sizes = found.sizes(size, weights)
    assert sum(sizes) == pytest.approx(size)
    assert walk(found, size, 0.0, 1.0, weights) == pytest.approx(4 * max(sizes))
    paces = [round_.times * max(share for *_, share in round_.pairs) for round_ in rounds_of(found, weights)]
    assert sum(paces) == pytest.approx(4 * max(sizes) / size)


@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.0], [-1.0, 2.0]])
def test_weights_that_say_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(CannotCollect):
        RingAlgorithm().plan("all-gather", RankGroup(2)).sizes(1.0, weights)


@each(("name", "operation"), CASES)
@each("pieces", [1, 3])
def test_single_sends_carry_the_bytes_and_wait_only_for_earlier_ones(name: str, operation: Operation, pieces: int) -> None:
    found = planned(ALGORITHMS[name], operation, RankGroup(6))
    sends = explicit_sends(found, 600.0, pieces=pieces)
    sizes = found.sizes(600.0)
    assert len(sends) == pieces * len({(send.step, send.source, send.target, send.reduce) for send in found.sends})
    assert sum(piece.size for piece in sends) == pytest.approx(
        sum(sum(sizes[send.chunk : send.chunk + send.chunks]) for send in found.sends)
    )
    for place, piece in enumerate(sends):
        assert all(before < place for before in piece.after)


def test_pieces_overlap_in_a_chain() -> None:
    chain = CollectivePlan("broadcast", 4, 1, tuple(PlanSend(step, step, step + 1, 0) for step in range(3)))
    for pieces, seconds in ((1, 36.0), (12, 14.0)):
        ends: list[float] = []
        for send in explicit_sends(chain, 12.0, pieces=pieces):  # of one byte a second
            ends.append(max((ends[predecessor] for predecessor in send.after), default=0.0) + send.size)
        assert max(ends) == pytest.approx(seconds)


def test_no_pieces_are_refused() -> None:
    with pytest.raises(CannotCollect, match="at least 1 piece, got 0"):
        explicit_sends(RingAlgorithm().plan("all-reduce", RankGroup(2)), 1.0, pieces=0)


# ---- written by hand, keys, and the table


def test_files_and_table_agree() -> None:
    folder = Path(algorithms.__file__).parent
    modules = {"own": "custom_allreduce", "written": "user_plan"}  # of kinds whose module has another name
    files = {path.stem for path in folder.glob("*.py") if "kind: ClassVar[str]" in path.read_text("utf-8")}
    assert files - {"algorithm"} == {modules.get(name, name.replace("-", "_")) for name in KINDS}
    kinds: dict[str, Any] = dict(KINDS)
    for name, kind in kinds.items():
        assert kind.kind == name
        module = modules.get(name, name.replace("-", "_"))
        assert kind.__module__.rpartition(".")[2] == module
        doc = ast.get_docstring(ast.parse((folder / f"{module}.py").read_text("utf-8"))) or ""
        assert "Source: " in doc
        for field in plan(kind):
            assert field.doc
    assert {algorithm.kind for algorithm in ALGORITHMS.values()} == set(KINDS) - {"written"}


@pytest.mark.parametrize("nodes", [(2, 1), (0, 3), (-1, 4)])
def test_nodes_that_do_not_add_up_are_refused(nodes: tuple[int, ...]) -> None:
    with pytest.raises(CannotCollect):
        RankGroup(4, nodes)


@pytest.mark.parametrize("ranks", [3, 6, 33])
@pytest.mark.parametrize("operation", KINDS["double-tree"].operations)
def test_rounds_of_many_pieces_are_those_of_their_plan(operation: Operation, ranks: int) -> None:
    found = DoubleTree(pieces=100)
    expected = rounds_of(found.plan(operation, RankGroup(ranks)))
    for one, other in zip(found.rounds(operation, RankGroup(ranks)), expected, strict=True):
        assert (one.times, one.reduce) == (other.times, other.reduce)
        for pair, same in zip(one.pairs, other.pairs, strict=True):
            assert pair == pytest.approx(same, rel=1e-12)


@pytest.mark.parametrize("algorithm", [DoubleTree(pieces=10**10), Hierarchical(pieces=10**10)])
def test_more_sends_than_are_written_out_are_refused_first(algorithm: Algorithm) -> None:
    with pytest.raises(CannotCollect, match="sends exceed the limit of"):
        algorithm.plan("all-reduce", RankGroup(8, (4, 4)))
    assert algorithm.rounds("all-reduce", RankGroup(8, (4, 4)))
    with pytest.raises(CannotCollect, match="sends exceed the limit of"):
        explicit_sends(RingAlgorithm().plan("all-reduce", RankGroup(4)), 1.0, pieces=10**10)
