"""The timeline as a figure, measured from what is drawn: nothing is wider than it is, and what waits is hatched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from hwsim import api
from hwsim.engine import simulate
from hwsim.formats import format_share
from hwsim.graph.builder import GraphBuilder
from hwsim.results.result import Result
from hwsim.views.gantt import draw as gantt
from hwsim.views.gantt.rows import GanttRow, rows_of

LLAMA = {
    "hwsim": "workload/1",
    "train": {
        "model": "llama-3-8b", "sequence": 8192, "microbatch": 1, "global_batch": 64, "dtype": "bf16", "parallel": {"dp": "rest"},
        "optimizer": "adam", "sharding": "zero-3",
    },
}  # fmt: skip
RACK = {
    "hwsim": "machine/1",
    "parts": {
        "a": {"kind": "machine", "use": "dgx-h100"},
        "b": {"kind": "machine", "use": "dgx-h100"},
        "leaf": {"kind": "switch", "use": "quantum-2-ndr", "count": 2},
    },
    "links": [
        {"between": ["a.nic*", "leaf0"], "kind": "infiniband", "use": "ndr400"},
        {"between": ["b.nic*", "leaf1"], "kind": "infiniband", "use": "ndr400"},
        {"name": "uplink", "between": ["leaf0", "leaf1"], "kind": "infiniband", "use": "ndr400", "rate": "100 Gb/s"},
    ],
}


@pytest.fixture(scope="module")
def llama() -> Result:
    return api.simulate(RACK, LLAMA, expect=False, interval=False)


def axes() -> Axes:
    figure = Figure(figsize=(9, 5), dpi=120)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def areas(drawn: Axes, what: str) -> dict[int, float]:
    """Row -> area of its artists `works` or `waits`, in units of the axis times the height of a row."""
    found: dict[int, float] = {}
    for artist in drawn.get_children():
        row, _, kind = (artist.get_gid() or "").partition(":")
        if kind == what:
            found[int(row)] = found.get(int(row), 0.0) + sum(_area(artist)) / gantt.TALL
    return found


def _area(artist: Any) -> Iterator[float]:
    if isinstance(artist, PolyCollection):
        for path in artist.get_paths():
            low, high = path.get_extents().get_points()
            yield float((high - low).prod())
    elif isinstance(artist, StepPatch):
        values, edges, baseline = artist.get_data()
        yield float((np.abs(np.asarray(baseline) - values) * np.diff(edges)).sum())


def drawn(result: Result, window: gantt.TimeWindow | None = None) -> tuple[Axes, tuple[GanttRow, ...]]:
    rows = rows_of(result).rows
    panel = axes()
    gantt.draw(panel, rows, window or gantt.TimeWindow(0.0, result.makespan_s))
    return panel, rows


def test_the_drawn_share_is_the_printed_one(llama: Result) -> None:
    panel, rows = drawn(llama)
    gantt._shares(panel, rows, gantt.TimeWindow(0.0, llama.makespan_s))
    printed = [text.get_text() for text in panel.texts if text.get_gid() == "share"]
    works, length = areas(panel, "works"), panel.get_xlim()[1]
    assert printed == [format_share(works[place] / length) for place in range(len(rows))]
    compute = next(place for place, row in enumerate(rows) if "compute" in row.name)
    (training,) = llama.trainings
    assert works[compute] / length == pytest.approx(training.computing, rel=0.02)  # which is of the last step alone
    assert training.computing < 0.25
    waits = areas(panel, "waits")[compute] / length
    assert waits == pytest.approx(float((rows[compute].high - rows[compute].low)[rows[compute].waits].sum()) / llama.makespan_s)
    assert waits > works[compute] / length


def test_a_stretch_is_drawn_op_by_op_and_as_true(llama: Result) -> None:
    rows = rows_of(llama).rows
    near = gantt.closer(rows, gantt.TimeWindow(0.0, llama.makespan_s))
    assert near is not None
    panel, _ = drawn(llama, near)
    assert not [artist for artist in panel.patches if isinstance(artist, StepPatch) and artist.get_gid()]
    for place, row in enumerate(rows):
        inside = np.clip(row.high, *near) - np.clip(row.low, *near)
        scale = (panel.get_xlim()[1] - panel.get_xlim()[0]) / (near.end - near.begin)
        assert areas(panel, "works").get(place, 0.0) == pytest.approx(float(inside[~row.waits].sum()) * scale)


def test_lanes_that_do_the_same_are_one_row(llama: Result) -> None:
    rows = rows_of(llama).rows
    assert [row.name for row in rows if "×" in row.name] == ["a.gpu*.compute × 8", "b.gpu*.compute × 8"]
    builder = GraphBuilder()
    for number, seconds in enumerate((1.0, 1.0, 1.5)):  # one of three is slow
        builder.op("train", device=f"gpu{number}", queue=builder.queue(f"gpu{number}.compute", f"gpu{number}"), time=seconds)
    apart = rows_of(Result("box", "loop", simulate(builder.build()))).rows
    assert [row.name for row in apart] == ["gpu0.compute\nand 1 identical", "gpu2.compute"]


def test_every_op_of_a_long_run_is_seen_however_short_it_is() -> None:
    builder = GraphBuilder()
    disk, gpu = builder.queue("read", "disk"), builder.queue("train", "gpu")
    with builder.repeat(100):
        read = builder.op("read", device="disk", queue=disk, time=1.5)
        builder.op("train", device="gpu", queue=gpu, time=1e-3, after=[read])
    run = Result("box", "pipeline", simulate(builder.build()))
    panel, _ = drawn(run, gantt.TimeWindow(0.0, 30.0))
    (marks,) = [line for line in panel.lines if line.get_gid() == "short"]
    assert np.asarray(marks.get_xdata(), float) == pytest.approx(np.arange(1, 21)[:19] * 1.5 + 0.0005, abs=0.02)
    panel, _ = drawn(run)  # of the whole run by column: too low to be seen, so that each has a mark
    assert areas(panel, "works")[1] == pytest.approx(0.1)
    at = np.concatenate([np.asarray(line.get_xdata(), float) for line in panel.lines if line.get_gid() == "short"])
    column = run.makespan_s / gantt.FINE
    assert all(np.abs(at - 1.5 * number).min() <= column for number in range(1, 101))


def test_dispatches_and_returns_have_names_of_their_own() -> None:
    run = api.simulate("d2l-laptop", "d2l/async-loop", set={"n": 3, "blocking": True}, expect=False)
    drawn = rows_of(run)
    assert (drawn.names, drawn.others) == (("add", "dispatch", "return"), 0)
    assert {row.name: {drawn.names[name] for name in row.name_of.tolist()} for row in drawn.rows} == {
        "cpu.compute": {"add"},
        "cpu.host": {"dispatch", "return"},
    }
