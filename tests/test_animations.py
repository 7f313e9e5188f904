"""Animations: what moves is where the run says, written the same every time, with its time scale."""

from __future__ import annotations

import re
from bisect import bisect_right
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from hwsim import api
from hwsim.ticks import FEMTO
from hwsim.views import SCENES
from hwsim.views.animate import lanes, queues, sends, svg
from hwsim.views.animate.draw import SCENES as DRAWN
from hwsim.views.animate.draw import render
from hwsim.views.animate.scene import SECONDS, NothingMoves, Token
from hwsim.views.gantt.rows import rows_of
from hwsim.views.kit.figure import LIGHT
from tests.command import hwsim

RING = ("d2l-8gpu-nvlink", "d2l/two-nvlink-rings", {"steps": "explicit", "algorithm": "ring"})


@pytest.fixture(scope="module")
def ring() -> api.Run:
    machine, workload, settings = RING
    return api.simulate(machine, workload, set=settings, expect=False, interval=False)


@pytest.fixture(scope="module")
def reads() -> api.Run:
    machine = {
        "hwsim": "machine/1",
        "class": "ideal",
        "parts": {"cpu": {"kind": "cpu", "use": "i7-6700k"}, "ssd": {"kind": "ssd", "use": "mqsim-default"}},
    }
    read = {"read": {"from": "ssd", "bytes": "4 KiB", "times": 400, "access": "random", "depth": 64}}
    workload = {"hwsim": "workload/1", "program": [read, {"wait": "all"}]}
    return api.simulate(machine, workload, requests="ssd", expect=False, interval=False)


def placed(token: Token, at: float) -> tuple[float, float] | None:
    """The place of a token at an instant; None if it is not there."""
    knots = token.knots
    if not knots[0].at <= at <= knots[-1].at:
        return None
    after = bisect_right(knots, at, key=lambda knot: knot.at)
    if after == len(knots):
        return knots[-1].x, knots[-1].y
    low, high = knots[after - 1], knots[after]
    part = (at - low.at) / (high.at - low.at) if high.at > low.at else 0.0
    return low.x + part * (high.x - low.x), low.y + part * (high.y - low.y)


def is_busy(token: Token, at: float) -> bool:
    """Whether a token is worked on at an instant."""
    return token.busy[0] <= at < token.busy[1]


def test_chunks_are_as_far_as_their_flows_have_carried(ring: api.Run) -> None:
    scene = sends.scene(ring)
    timeline = ring.timeline
    played = [op for op in range(len(timeline)) if timeline.flow_class[op] >= 0]
    assert len(scene.tokens) == len(played) == 8 * 14
    bent = 0
    for token, op in zip(scene.tokens, played, strict=True):
        start, end, number = int(timeline.start[op]), int(timeline.end[op]), int(timeline.flow_class[op])
        (x, y), (to_x, to_y) = token.knots[0][1:], token.knots[-1][1:]
        length = np.hypot(to_x - x, to_y - y)
        whole, _ = timeline.service(number, start, end)
        for part in (0.1, 0.37, 0.5, 0.83):
            at = start + round(part * (end - start))
            place = placed(token, at / FEMTO)
            assert place is not None
            carried = timeline.service(number, start, at)[0] / whole
            assert np.hypot(place[0] - x, place[1] - y) / length == pytest.approx(carried, abs=1e-6)
            bent += abs(carried - part) > 1e-3
    assert placed(token, float(scene.end) * 1.01) is None
    sent = {(op.device, round(op.start_s, 12)) for op in ring.ops if "step" in op.name}
    assert len(sent) == len(scene.tokens)


def test_chunks_slow_down_when_their_link_is_shared() -> None:
    machine = "d2l-4gpu-pcie"
    copies = [{"copy": {"from": "cpu", "to": f"gpu{n}", "bytes": size}} for n, size in enumerate(("160 MB", "40 MB"))]
    run = api.simulate(machine, {"hwsim": "workload/1", "program": [*copies, {"wait": "all"}]}, expect=False, interval=False)
    long = max(sends.scene(run).tokens, key=lambda token: token.knots[-1].at)
    first, last = long.knots[0], long.knots[-1]
    bend = [knot for knot in long.knots[1:-1] if knot.x != first.x or knot.y != first.y]
    assert len(bend) == 1  # half as fast until the short one has ended
    part = np.hypot(bend[0].x - first.x, bend[0].y - first.y) / np.hypot(last.x - first.x, last.y - first.y)
    assert part == pytest.approx(0.25, rel=1e-3)
    assert (bend[0].at - first.at) / (last.at - first.at) == pytest.approx(0.4, rel=1e-3)


def test_a_queue_is_as_long_as_its_launches_that_have_not_ended() -> None:
    run = api.simulate("d2l-laptop", "d2l/async-loop", set={"n": 40}, expect=False, interval=False)
    scene = queues.ops(run)
    issued = sorted(op.end_s for op in run.ops if op.kind == "dispatch")
    worked = sorted((op.start_s, op.end_s) for op in run.ops if op.kind == "busy")
    assert len(scene.tokens) == 40
    for now in np.linspace(scene.begin, scene.end * 0.999, 23):
        there = [placed(token, float(now)) for token in scene.tokens]
        expected = sum(launch <= now for launch in issued) - sum(end < now for _, end in worked)
        assert sum(place is not None for place in there) == expected
        assert len({place for place in there if place is not None}) == expected  # no two at one place
        assert sum(is_busy(token, float(now)) for token in scene.tokens) == sum(start <= now < end for start, end in worked)


def test_requests_stack_at_the_chip_that_reads_them(reads: api.Run) -> None:
    (row,) = reads.requests
    times = row.times
    assert times is not None
    assert (len(times.issued), times.called) == (400, "chip")
    assert row.latency_max_s == pytest.approx(float((times.finish - times.issued).max()))
    scene = queues.requests(reads)
    assert "the first 160 of 400" in scene.below
    at = (scene.begin + scene.end) / 2
    flying = (times.issued <= at) & (times.finish >= at)
    there = int(flying.sum())
    places = [placed(token, at) for token in scene.tokens]
    assert sum(place is not None for place in places) == there == 64
    assert len({place for place in places if place is not None}) == there
    first = [
        min(np.flatnonzero(flying & (times.unit == chip)), key=lambda each: times.finish[each]) for chip in {*times.unit[flying]}
    ]
    assert sum(is_busy(token, at) for token in scene.tokens) == sum(times.start[request] <= at for request in first)
    foot = max(place[1] for place in places if place is not None)
    assert sum(place[1] == foot for place in places if place is not None) == len(first)


def test_rows_grow_to_what_the_timeline_has(ring: api.Run) -> None:
    scene = lanes.scene(ring)
    rows = rows_of(ring).rows
    wide = sum(token.wide for token in scene.tokens)
    scale = 550.0 / ring.makespan_s
    shown = sorted(rows, key=lambda row: -row.working_s)[: lanes.ROWS]
    assert wide == pytest.approx(sum(float((row.high - row.low).sum()) for row in shown) * scale, rel=1e-6)


def test_a_moving_file_says_its_scale_and_moves_as_the_scene(ring: api.Run) -> None:
    scene = sends.scene(ring)
    text = svg.svg_file(scene, LIGHT).decode()
    root = ET.fromstring(text)
    assert f"one second shows {1e3 * scene.slowed:.3g} ms of the run" in text
    moves = [node for node in root.iter() if node.tag.endswith("animateTransform")]
    assert len(moves) == len(scene.tokens)
    for token, move in zip(scene.tokens, moves, strict=True):
        at = [float(time) for time in str(move.get("keyTimes")).split(";")]
        x = [float(point.split(",")[0]) for point in str(move.get("values")).split(";")]
        assert (at[0], at[-1]) == (0.0, 1.0)
        for knot in token.knots:
            part = (knot.at - scene.begin) / (scene.end - scene.begin)
            assert np.interp(part, at, x) == pytest.approx(knot.x, abs=0.1)
    assert set(re.findall(r'dur="([^"]+)"', text)) == {f"{SECONDS:g}s"}
    assert "<script" not in text


@pytest.mark.parametrize("suffix", [".svg", ".dark.svg"])
def test_the_same_run_is_the_same_bytes(suffix: str) -> None:
    run = api.simulate("d2l-laptop", "d2l/async-loop", set={"n": 5}, expect=False, interval=False)
    assert [*render(run, "launches", suffix)] == [*render(run, "launches", suffix)]


def test_what_a_run_does_not_have_is_said(tmp_path: Path, ring: api.Run) -> None:
    assert tuple(DRAWN) == SCENES
    with pytest.raises(NothingMoves, match="--requests"):
        queues.requests(ring)
    with pytest.raises(NothingMoves, match="runtime"):
        queues.ops(ring)
    done = hwsim("simulate", "d2l-laptop", "d2l/async-loop", "--animate", "sends", tmp_path / "a.svg", code=2)
    assert not list(tmp_path.iterdir())
    assert "steps: explicit" in done.output
    with pytest.raises(ValueError, match=r"suffix \.svg"):
        ring.animate("sends", tmp_path / "a.avi")
