"""Animations of the explorer are the scenes that `hwsim simulate --animate` writes, of the run that the page shows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hwsim import api
from hwsim.explorer.worker import WorkerState
from hwsim.formats import format_quantity
from hwsim.spec import find
from hwsim.views.animate.draw import SCENES, render
from hwsim.views.animate.scene import Scene
from tests.test_animations import placed
from tests.test_explore_answers import asked

QUEUE = ("d2l-laptop", "d2l/async-loop", {"n": "40"})
RING = ("d2l-8gpu-nvlink", "d2l/two-nvlink-rings", {"algorithm": "ring"})
DISK = """
hwsim: workload/1
name: reads
program:
  - read: {from: ssd, bytes: 4 KiB, times: 300, access: random, depth: 8}
  - wait: all
"""
DRIVE = """
hwsim: machine/1
name: drive
class: ideal
parts: {cpu: {kind: cpu, use: i7-6700k}, ssd: {kind: ssd, use: mqsim-default}}
"""
STAGES = """
hwsim: workload/1
train: {model: llama-3-8b, sequence: 2048, microbatch: 1, global_batch: 4, dtype: bf16, parallel: {pp: 4, tp: 2}, optimizer: adam}
"""


def said(machine: str, workload: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """A question of the page about two files of the library."""
    texts = {kind: find(kind, name).read_text("utf-8") for kind, name in (("machine", machine), ("workload", workload))}
    return {**texts, "set": dict(settings)}


@pytest.fixture(scope="module")
def desk() -> WorkerState:
    return WorkerState(())


def same(shown: Mapping[str, Any], scene: Scene) -> None:
    """A scene of the page is where the scene of the command is, at every instant tried."""
    assert (shown["title"], shown["below"], shown["begin"], shown["end"]) == (scene.title, scene.below, scene.begin, scene.end)
    assert [text for _, _, text, *_ in shown["words"]] == [words.text for words in scene.words]
    assert len(shown["tokens"]) == len(scene.tokens) > 0
    length = scene.end - scene.begin
    for token, (times, x, y, wide, high, _, busy, name, grows) in zip(scene.tokens, shown["tokens"], strict=True):
        assert (name, grows) == (token.name, token.grows)
        assert (wide, high) == pytest.approx((token.wide, token.high), abs=0.01)
        assert busy == pytest.approx([(instant - scene.begin) / length for instant in token.busy], abs=1e-6)
        middles = [(low + high) / 2 for low, high in pairwise(times) if high - low > 1e-5]
        for part in middles[:3]:
            place = placed(token, scene.begin + part * length)
            assert place is not None
            assert (np.interp(part, times, x), np.interp(part, times, y)) == pytest.approx(place, abs=0.02)


@pytest.mark.parametrize(("files", "kind"), [(QUEUE, "launches"), (RING, "sends"), (QUEUE, "lanes")])
def test_a_scene_is_the_one_that_the_command_draws(desk: WorkerState, files: tuple[str, str, dict[str, str]], kind: str) -> None:
    machine, workload, settings = files
    found = asked(desk, "animated", said(*files) | {"scene": kind, "drawn": "light"})
    finer = {"workload.program.0.allreduce.steps": "explicit"} if kind == "sends" else {}
    run = api.simulate(machine, workload, set=settings | finer, expect=False, interval=False)
    same(found["scene"], SCENES[kind](run))
    assert found["svg"].encode() == b"".join(render(run, kind, ".svg")), "the file that is saved, too"
    if finer:
        whole = api.simulate(machine, workload, set=settings, expect=False, interval=False)
        assert found["text"].startswith(f"Simulated send by send, the run takes {format_quantity(run.makespan_s, 's')}")
        assert format_quantity(whole.makespan_s, "s") in found["text"]


def test_requests_are_played_where_ops_ask_for_them(desk: WorkerState) -> None:
    question = {"machine": DRIVE, "workload": DISK, "set": {}}
    found = asked(desk, "animated", question | {"scene": "", "listed": True})
    assert (found["kind"], [kind for kind, _, why in found["kinds"] if not why]) == ("requests", ["requests", "lanes"])
    run = api.simulate(DRIVE, DISK, requests="ssd", expect=False, interval=False)
    same(found["scene"], SCENES["requests"](run))
    assert found["text"].startswith(f"Simulated request by request, the run takes {format_quantity(run.makespan_s, 's')}")


def test_a_pipeline_shows_its_bubble_first_and_what_is_missing_is_said(desk: WorkerState) -> None:
    machine = find("machine", "dgx-h100").read_text("utf-8")
    question = {"machine": machine, "workload": STAGES, "set": {}}
    coloured = asked(desk, "run", question)["coloured"]
    found = asked(desk, "animated", question | {"scene": "", "listed": True, "coloured": coloured})
    assert found["kind"] == "lanes"
    assert "stages" in found["scene"]["title"]
    why = {kind: reason for kind, _, reason in found["kinds"]}
    assert "runtime" in why["launches"]
    assert not why["lanes"]
    names = SCENES["lanes"](api.simulate(machine, STAGES, expect=False, interval=False)).names
    assert set(names) >= {"forward", "backward", "optimizer"}
    assert found["scene"]["tints"] == [coloured["by"][name] for name in names], "of the timeline"
    nothing = asked(desk, "animated", question | {"scene": "requests"})
    assert nothing["scene"] is None
    assert "request by request" in nothing["text"]


def test_colours_outlive_the_process_and_stay_when_other_ops_come() -> None:
    """The page sends back what it was given: ten ops have names for families, and none takes another's colour."""
    machine = "hwsim: machine/1\nuse: dgx-a100\n"
    program = [f"{{busy: {{device: gpu{i % 2}, time: {i + 1} ms, name: {name}}}}}" for i, name in enumerate("abcdefghij")]

    def run(ops: list[str], coloured: Mapping[str, Any]) -> dict[str, Any]:
        text = f"hwsim: workload/1\nprogram: [{', '.join([*ops, '{wait: all}'])}]\n"
        return asked(WorkerState(()), "run", {"machine": machine, "workload": text, "set": {}, "coloured": coloured})

    first = run(program[2:6], {})
    other = run(program, first["coloured"])
    tints = [dict(zip(found["names"], found["tints"], strict=True)) for found in (first, other)]
    assert (
        {name: tints[1][name] for name in "cdef"}
        == {name: tints[0][name] for name in "cdef"}
        == dict(zip("cdef", range(4), strict=True))
    )
    assert sorted(tints[1][name] for name in "abghij") == [4, 5, 6, 7, 7, 7]
    assert run(program[2:6], other["coloured"])["tints"] == first["tints"]
    assert WorkerState(()).answered("run", {"machine": machine, "workload": "", "coloured": {"by": {"a": "red"}}})[0] == 400
