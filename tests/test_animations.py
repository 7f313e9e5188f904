"""Animations: what moves is where the run says, written the same every time, with its time scale."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from hwsim import api
from hwsim.cli import main
from hwsim.ticks import FEMTO
from hwsim.views.animate import sends
from hwsim.views.animate.draw import CHUNK, SECONDS, render
from hwsim.views.animate.sends import Chunk

RING = ("d2l-8gpu-nvlink", "d2l/two-nvlink-rings", {"steps": "explicit", "algorithm": "ring"})


@pytest.fixture(scope="module")
def ring() -> api.Run:
    machine, workload, settings = RING
    return api.simulate(machine, workload, set=settings, expect=False, interval=False)


def place_of(token: Chunk, at: float) -> tuple[float, float] | None:
    """Where a token is at an instant; None if it is not there."""
    times, xs, ys = np.array(token.knots).T
    return (float(np.interp(at, times, xs)), float(np.interp(at, times, ys))) if times[0] <= at <= times[-1] else None


def test_chunks_are_as_far_as_their_flows_have_carried(ring: api.Run) -> None:
    scene = sends.scene(ring)
    timeline = ring.timeline
    played = [op for op in range(len(timeline)) if timeline.flow_class[op] >= 0]
    assert len(scene.chunks) == len(played) == 8 * 14
    bent = 0
    for token, op in zip(scene.chunks, played, strict=True):
        start, end, number = int(timeline.start[op]), int(timeline.end[op]), int(timeline.flow_class[op])
        (x, y), (to_x, to_y) = token.knots[0][1:], token.knots[-1][1:]
        length = np.hypot(to_x - x, to_y - y)
        whole, _ = timeline.service(number, start, end)
        for part in (0.1, 0.37, 0.5, 0.83):
            at = start + round(part * (end - start))
            place = place_of(token, at / FEMTO)
            assert place is not None
            carried = timeline.service(number, start, at)[0] / whole
            assert np.hypot(place[0] - x, place[1] - y) / length == pytest.approx(carried, abs=1e-6)
            bent += abs(carried - part) > 1e-3
    assert place_of(token, scene.end * 1.01) is None
    sent = {(op.device, round(op.start_s, 12)) for op in ring.ops if "step" in op.name}
    assert len(sent) == len(scene.chunks)


def test_chunks_slow_down_when_their_link_is_shared() -> None:
    machine = "d2l-4gpu-pcie"
    copies = [{"copy": {"from": "cpu", "to": f"gpu{n}", "bytes": size}} for n, size in enumerate(("160 MB", "40 MB"))]
    run = api.simulate(machine, {"hwsim": "workload/1", "program": [*copies, {"wait": "all"}]}, expect=False, interval=False)
    long = max(sends.scene(run).chunks, key=lambda token: token.knots[-1].at)
    first, last = long.knots[0], long.knots[-1]
    bend = [knot for knot in long.knots[1:-1] if knot.x != first.x or knot.y != first.y]
    assert len(bend) == 1  # half as fast until the short one has ended
    part = np.hypot(bend[0].x - first.x, bend[0].y - first.y) / np.hypot(last.x - first.x, last.y - first.y)
    assert part == pytest.approx(0.25, rel=1e-3)
    assert (bend[0].at - first.at) / (last.at - first.at) == pytest.approx(0.4, rel=1e-3)


def test_a_moving_file_says_its_scale_and_moves_as_the_scene(ring: api.Run) -> None:
    scene = sends.scene(ring)
    text = b"".join(render(ring, ".svg")).decode()
    root = ET.fromstring(text)
    assert f"one second shows {1e3 * (scene.end - scene.begin) / SECONDS:.3g} ms of the run" in text
    moves = [each for each in root.iter() if each.tag.endswith("animateTransform")]
    assert len(moves) == len(scene.chunks)
    for token, move in zip(scene.chunks, moves, strict=True):
        at = [float(each) for each in str(move.get("keyTimes")).split(";")]
        x = [float(each.split(",")[0]) for each in str(move.get("values")).split(";")]
        assert (at[0], at[-1]) == (0.0, 1.0)
        for knot in token.knots:
            part = (knot.at - scene.begin) / (scene.end - scene.begin)
            assert np.interp(part, at, x) == pytest.approx(knot.x - CHUNK / 2, abs=0.1)
    assert set(re.findall(r'dur="([^"]+)"', text)) == {f"{SECONDS:g}s"}
    assert "<script" not in text


@pytest.mark.parametrize("suffix", [".svg", ".dark.svg"])
def test_the_same_run_is_the_same_bytes(ring: api.Run, suffix: str) -> None:
    assert [*render(ring, suffix)] == [*render(ring, suffix)]


def test_what_a_run_does_not_have_is_said(tmp_path: Path, ring: api.Run) -> None:
    done = CliRunner().invoke(main, ["simulate", "d2l-laptop", "d2l/async-loop", "--animate", str(tmp_path / "a.svg")])
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "steps: explicit" in done.output
    with pytest.raises(ValueError, match=r"as \.svg"):
        ring.animate(tmp_path / "a.gif")
