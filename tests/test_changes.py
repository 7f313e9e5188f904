"""While capacities change, compiled code, the driver and SimPy alone say the same, to the femtosecond."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import environ
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwsim import ticks
from hwsim.engine import Deadlock, Driver, PlainEngine, core, native, simulate
from hwsim.engine.compile import compile_flat
from hwsim.engine.driver import capacity_changer
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import Change, Floats, Ints, LazyChanges, OpGraph, capacities_of
from hwsim.results.timeline import Timeline
from tests.engine_graphs import crossing_flows, transfers
from tests.present import present
from tests.strategies import graphs, networks
from tests.test_flows import fabrics
from tests.test_inorder import columns

pytestmark = pytest.mark.skipif(not core.is_there(), reason=f"nothing to compare Python with: {core.found()}")

CASES = settings(
    max_examples=int(environ.get("HWSIM_THOROUGH") or 100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
PATIENCE = st.sampled_from([0, core.PATIENCE])  # instant by instant, or at once
FRACTIONS = st.sampled_from([0.0, 0.0, 1e-6, 0.25, 1 / 3, 0.5, 0.9, 1.0, 1.0])


@st.composite
def changed(draw: st.DrawFn, graph: OpGraph, span: int) -> tuple[Change, ...]:
    """Changes of some capacities: at 0, at one instant, when something ends, after the end; down and back."""
    calm = on_the_clock(graph, ())
    ends = [] if calm is None else calm.end.tolist()
    moments = st.one_of(st.integers(0, 40), st.integers(0, span), st.sampled_from([0, 0, *ends, 2 * max(ends, default=0) + 1]))
    names = st.sampled_from([*(capacity.name for capacity in graph.capacities), "nobody's"])
    rows = draw(st.lists(st.builds(Change, moments, names, FRACTIONS), min_size=1, max_size=8))
    downs = draw(st.lists(st.tuples(moments, names, st.integers(0, 30)), max_size=3))
    return tuple(rows + [Change(now + after, name, float(bool(after))) for now, name, long in downs for after in (0, long)])


@dataclass
class Lazily(LazyChanges):
    """The same changes in order, a few at a time as they are asked for."""

    rows: Sequence[Change]
    at_once: int = 3
    asked: int = 0

    def __post_init__(self) -> None:
        self.rows = sorted(self.rows)
        self.capacities = tuple(sorted(capacities_of(self.rows)))

    def chunks(self) -> Iterator[tuple[Ints, Ints, Floats]]:
        for first in range(0, len(self.rows), self.at_once):
            rows = self.rows[first : first + self.at_once]
            self.asked += len(rows)
            numbers = [self.capacities.index(row.capacity) for row in rows]
            yield ticks.column([row.at for row in rows]), np.array(numbers), np.array([row.fraction for row in rows])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]


def compiled(graph: OpGraph, changes: Sequence[Change], patience: int = core.PATIENCE) -> Timeline | None:
    flat = flatten(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "PATIENCE", patience)
        return native.play(flat, compile_flat(flat, changing=capacities_of(changes)), changes)


def on_the_clock(graph: OpGraph, changes: Sequence[Change], *, which: type[Driver | PlainEngine] = Driver) -> Timeline | None:
    """The timeline by an engine on SimPy's clock; None if ops wait for ever."""
    limited = capacities_of(changes)
    host = which(graph.capacities, graph.pools, **({"closed": True} if which is Driver else {}), limited=limited)
    host.submit(graph)
    host.env.process(capacity_changer(changes, alone=True)(host))
    timeline = host.run()
    return None if host.unfinished() else timeline


def told(timeline: Timeline) -> list[object]:
    return [
        *columns(timeline)[:6],
        [[tuple(pace) for pace in course] for course in timeline.paces],
        timeline.solves,
        dict(timeline.drawing),
        [timeline.held(number) for number in range(len(timeline.paces))],
    ]


def agree(graph: OpGraph, changes: Sequence[Change], patience: int = core.PATIENCE) -> None:
    found, expected = compiled(graph, Lazily(changes) if patience else changes, patience), on_the_clock(graph, changes)
    if expected is None:
        assert found is None
    elif found is not None:
        assert told(found) == told(expected)
        for op, received in found.received.items():
            of_paces = expected.service(int(expected.flow_class[op]), received.begun, int(expected.end[op]))
            assert (received.service, received.pace) == of_paces
        whole = present(on_the_clock(graph, changes, which=PlainEngine))
        assert [found.start.tolist(), found.end.tolist(), found.granted.tolist()] == [
            whole.start.tolist(), whole.end.tolist(), whole.granted.tolist(),
        ]  # fmt: skip


@CASES
@given(st.data(), PATIENCE)
def test_graphs_with_queues_pools_clocks_and_holds(data: st.DataObject, patience: int) -> None:
    graph = data.draw(graphs())
    agree(graph, data.draw(changed(graph, 10**9)), patience)


@CASES
@given(st.data(), PATIENCE)
def test_networks(data: st.DataObject, patience: int) -> None:
    graph = data.draw(networks())
    agree(graph, data.draw(changed(graph, 10**2)), patience)


@CASES
@given(st.data())
def test_fabrics(data: st.DataObject) -> None:
    graph = data.draw(fabrics())
    agree(graph, data.draw(changed(graph, 10**13)))


# ---------------------------------------------------------------- one by one

NS = 10**6  # fs: a byte over the link


def down(begin: int, end: int) -> list[Change]:
    return [Change(begin, "link", 0.0), Change(end, "link", 1.0)]


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        (down(2 * NS, 5 * NS), 13 * NS),
        (down(0, 3 * NS), 13 * NS),
        (down(4 * NS, 4 * NS), 10 * NS),  # for no time
        (down(10 * NS, 20 * NS), 10 * NS),  # at the end and after it
        ([Change(0, "link", 0.25), Change(0, "link", 0.5)], 20 * NS),  # of two at one instant the faster counts
        ([Change(0, "link", 0.5), *down(5 * NS, 6 * NS), Change(2**80, "link", 0.0)], 14 * NS - NS // 2),
        ([Change(0, "another", 0.0)], 10 * NS),
    ],
)
def test_a_transfer_of_ten_bytes(changes: list[Change], end: int) -> None:
    graph = transfers(10)
    found = present(compiled(graph, changes))
    assert found.end.tolist() == [end]
    assert told(found) == told(present(on_the_clock(graph, changes)))
    assert [simulate(graph, changes=changes, fast=fast).end.tolist() for fast in ("always", "never")] == [[end]] * 2


def test_what_is_down_for_ever_never_ends_and_what_is_down_for_long_is_left_to_python() -> None:
    with pytest.raises(Deadlock, match="never ended"):
        simulate(transfers(10), changes=[Change(NS, "link", 0.0)], fast="always")
    for until in (2**62, 2**80):
        changes = down(NS, until)
        assert simulate(transfers(10), changes=changes, fast="always").end.tolist() == [until + 9 * NS]
        assert (compiled(transfers(10), changes) is None) == (until > 2**63)


def test_changes_are_asked_for_until_the_run_ends() -> None:
    changes = Lazily([Change(index * NS, "link", 0.5 if index % 2 else 1.0) for index in range(10_000)], at_once=10)
    found = present(compiled(transfers(30), changes))
    assert found.end.tolist() == [40 * NS]
    assert changes.asked == 50
    assert told(found) == told(present(on_the_clock(transfers(30), changes.rows)))


def test_a_fraction_beyond_the_whole_is_refused() -> None:
    for fraction in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            simulate(transfers(10), changes=[Change(0, "link", fraction)], fast="always")


@pytest.mark.parametrize("seed", range(3))
def test_hundreds_of_flows_between_hosts_whose_links_change(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = crossing_flows(rng, seed)
    span = int(simulate(graph).end.max())
    rows = zip(rng.integers(0, span, 200).tolist(), rng.integers(0, len(graph.capacities), 200).tolist(), strict=True)
    fractions = rng.choice([0.0, 0.3, 0.9, 1.0, 1.0], 200).tolist()
    changes = [Change(now, graph.capacities[which].name, part) for (now, which), part in zip(rows, fractions, strict=True)]
    changes += [Change(span, capacity.name, 1.0) for capacity in graph.capacities]
    agree(graph, changes)
