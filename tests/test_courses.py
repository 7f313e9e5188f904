"""Sends written out in columns are the sends written out one by one; labels made when they are asked for are the same labels."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.api import Run
from hwsim.graph.builder import GraphBuilder
from hwsim.graph.opgraph import Label, labels_where
from hwsim.spec import SpecError
from hwsim.workload import stepping

LINK = "{{name: ports, between: [switch, {gpu}], kind: direct, bandwidth: {rate} GB/s, latency: 2 us}}"


def machine(rates: list[int]) -> str:
    """A star whose GPUs have links of these rates."""
    parts = "\n".join(
        f"  gpu{at}: {{kind: gpu, flop: {{fp32: 1 TFLOP/s}}, memory: {{bandwidth: 100 GB/s}}}}" for at in range(len(rates))
    )
    links = ", ".join(LINK.format(gpu=f"gpu{at}", rate=rate) for at, rate in enumerate(rates))
    head = "hwsim: machine/1\nclass: ideal\nname: a star\nsource: guess\nref: a test\n"
    return f"{head}parts:\n{parts}\n  switch: {{kind: switch}}\nlinks: [{links}]\n"


def runs(machine: str, program: Any) -> tuple[Run, Run]:
    """In columns, and send by send."""
    workload = {"hwsim": "workload/1", "program": program}
    found = []
    for least in (1, 1_000_000):
        with patch.object(stepping, "LEAST_IN_COLUMNS", least):
            found.append(hwsim.simulate(machine, workload, fold="never"))
    return found[0], found[1]


def ops(result: Run) -> list[tuple[object, ...]]:
    """What each op is called, and when it ran."""
    flat = result.timeline.flat
    names = [flat.graph.labels[label] for label in flat.label.tolist()]
    columns = (result.timeline.start, result.timeline.end, flat.iteration, flat.size, flat.queue)
    return list(
        zip(names, (flat.graph.costs[cost] for cost in flat.cost.tolist()), *(each.tolist() for each in columns), strict=True)
    )


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=2, max_size=7),
    st.sampled_from(["ring", "halving-doubling", "rings-both-ways", "recursive-doubling"]),
    st.integers(1, 3),
    st.booleans(),
    st.lists(st.integers(0, 30), min_size=2, max_size=3),
)
def test_columns_are_the_sends_one_by_one(rates: list[int], algorithm: str, chunks: int, each: bool, late: list[int]) -> None:
    if algorithm in ("halving-doubling", "recursive-doubling"):
        rates = rates[:4] if len(rates) >= 4 else rates[:2]
    send = {"allreduce": {"among": "gpu*", "bytes": "1 MB", "algorithm": algorithm, "steps": "explicit", "chunks": chunks}}
    body: list[Any] = []
    for microseconds in late:
        device, time = ("$self", f"$rank * {microseconds} us") if each else ("gpu0", f"{microseconds} us")
        body += [{"busy": {"device": device, "time": time}}, send]
    program: Any = {"each": "gpu*", "do": body} if each else body
    columns, rows = runs(machine(rates), program)
    assert ops(columns) == ops(rows)
    assert columns.to_json() == rows.to_json()
    assert tuple(columns.timeline.flat.graph.labels) == tuple(rows.timeline.flat.graph.labels)
    assert columns.timeline.flat.graph.labels == rows.timeline.flat.graph.labels


def test_what_is_too_much_says_how_much_it_is() -> None:
    send = {"allreduce": {"among": "gpu*", "bytes": "1 MB", "algorithm": "ring", "steps": "explicit"}}
    with patch.object(stepping, "MOST_IN_COLUMNS", 100), pytest.raises(SpecError, match=r"112 sends .* take about 39.2 kB"):
        hwsim.simulate(machine([1] * 8), {"hwsim": "workload/1", "program": [send]}, fold="never")


NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)


@given(st.lists(st.one_of(st.sampled_from("abcd"), st.tuples(NAMES, NAMES)), max_size=6))
def test_labels_of_grids_are_those_of_a_builder_without_them(asked: list[Any]) -> None:
    grids, single = GraphBuilder(), GraphBuilder()
    for each in asked:
        if isinstance(each, str):
            assert grids.label(each, "send", each) == single.label(each, "send", each)
        else:
            numbers = grids.label_grid(each[0], "send", each[1]).tolist()
            assert numbers == [[single.label(name, "send", device) for device in each[1]] for name in each[0]]
    labels = grids.build().labels
    assert len(labels) == grids.label_count() == single.label_count()
    assert [labels[number] for number in range(len(labels))] == list(labels) == list(single.build().labels)
    assert [grids.label_at(number) for number in range(len(labels))] == list(labels)
    assert labels_where(labels, lambda kind, program: (kind, program) == ("send", "main")).all()
    assert all(isinstance(label, Label) for label in labels[1:])
