"""The answers of the explorer: what the page shows is what the run says, and nothing that it is asked makes it fall over."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

import hwsim
from hwsim.explorer.answer import answer
from hwsim.explorer.questions import HAND, REST
from hwsim.explorer.spans import TICKS, Tints
from hwsim.explorer.worker import WorkerState
from hwsim.formats import format_quantity
from hwsim.results.activities import bounds_of
from hwsim.results.critical import critical_path
from hwsim.spec import find
from hwsim.studies.session import Session
from tests.effort import effort

MACHINE, WORKLOAD = "d2l-gpu-workstation", "d2l/copy-overlap"


def texts(machine: str = MACHINE, workload: str = WORKLOAD) -> dict[str, Any]:
    """What the page sends of two files of the library."""
    found = {"machine": find("machine", machine).read_text("utf-8"), "workload": find("workload", workload).read_text("utf-8")}
    return found | {"called": {"machine": machine, "workload": workload}}


def asked(desk: WorkerState, door: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """An answer."""
    status, text = desk.answered(door, said)
    assert status == 200, text
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture(scope="module")
def desk() -> WorkerState:
    return WorkerState(())


def test_the_answer_is_the_run(desk: WorkerState) -> None:
    found = asked(desk, "run", texts())
    run = hwsim.simulate(MACHINE, WORKLOAD)
    assert found["seconds"] == run.makespan_s
    assert (found["interval"]["low"], found["interval"]["high"]) == (run.interval.low, run.interval.high)
    assert found["verdicts"][0][2] == "met"
    assert [name for name, _, _ in found["bounds"]] == [part.bound.full for part in bounds_of(run.timeline, run.devices)]
    assert sum(seconds for _, seconds, _ in found["bounds"]) == pytest.approx(found["seconds"])
    assert ["time", format_quantity(run.makespan_s, "s")] in found["facts"]
    path = found["path"]
    assert (path[0][0], path[-1][1]) == (0, TICKS)
    assert [low for low, *_ in path[1:]] == [high for _, high, *_ in path[:-1]], "the pieces tile the time"
    assert len(path) == found["segments"] == len(critical_path(run.timeline))
    assert path[0][5] == "the run begins: it waits for nothing"
    assert path[1][5].endswith("the previous op in gpu.compute, has ended") or path[1][6] == path[0][6]


@pytest.mark.parametrize("settings", [{}, {"times": "37", "n": "500"}, {"copy": "5"}])
def test_spans_are_the_ops(desk: WorkerState, settings: dict[str, str]) -> None:
    found = asked(desk, "run", texts() | {"set": settings})
    run = Session(MACHINE, WORKLOAD).shown(settings)
    rows = {(row.device, row.name, round(row.start_s / run.makespan_s * TICKS)) for row in run.ops}
    seen = {
        (lane["name"].partition(".")[0], found["names"][name], tick)
        for lane in found["lanes"]
        for tick, name in zip(lane["at"], lane["name_of"], strict=True)
    }
    assert {(name, tick) for _, name, tick in seen} == {(name, tick) for _, name, tick in rows}
    assert found["spans"] == found["sent"] == len(rows) == found["ops"]


def test_many_ops_are_few_spans_that_cover_the_same(desk: WorkerState) -> None:
    said = texts() | {"set": {"times": "5000"}, "pixels": 800}
    found = asked(desk, "run", said)
    assert found["ops"] == 10_000
    assert found["sent"] < 4 * 800
    copies = found["lanes"][1]
    busy = sum(long * full / 100 for long, full in zip(copies["long"], copies["full"], strict=True)) / TICKS * found["seconds"]
    assert busy == pytest.approx(5000 * 9.615e-3, rel=0.02), "a row is as full as it is busy, however it is drawn"
    part = asked(desk, "run", said | {"part": [0.5, 0.51]})
    assert 90 <= part["spans"] <= 110
    assert part["sent"] == part["spans"], "zoomed in, each op is a span"
    low, high = part["part"]
    assert (low, high) == pytest.approx((0.5 * found["seconds"], 0.51 * found["seconds"]))
    assert [piece[3] for piece in found["path"]] == ["matmul x 5,000", "copy to CPU", "copy to CPU"], "equal pieces are one"
    assert (found["path"][0][0], found["path"][-1][1], len(found["path"])) == (0, TICKS, found["segments"])


def test_a_path_of_many_unlike_pieces_is_shown_all_over_the_run(desk: WorkerState) -> None:
    program = "{busy: {device: gpu, time: 1 ms, writes: x}}, {busy: {device: cpu, time: 1 ms, reads: x}}, {wait: all}"
    workload = f"hwsim: workload/1\nprogram: [{{repeat: {{times: 2000, do: [{program}]}}}}]\n"
    found = asked(desk, "run", {"machine": "hwsim: machine/1\nuse: d2l-gpu-workstation\n", "workload": workload})
    assert len(found["path"]) == 400
    middles = [(low + high) / 2 for low, high, *_ in found["path"]]
    assert max(np.diff([0.0, *middles, TICKS])) < TICKS / 100


def test_equal_lanes_are_one_row_and_waiting_is_marked(desk: WorkerState) -> None:
    found = asked(desk, "run", texts("dgx-a100", "resnet50-dp"))
    assert max(lane["times"] for lane in found["lanes"]) == 8
    assert sum(lane["times"] for lane in found["lanes"]) + found["lanes_left"] >= 17
    program = (
        "{busy: {device: $self, time: $rank * 5 ms + 1 ms, writes: g}}, {allreduce: {among: gpu0..1, bytes: 1 MB, reads: g}}"
    )
    workload = f"hwsim: workload/1\nprogram: {{each: gpu0..1, do: [{program}]}}\n"
    uneven = asked(desk, "run", {"machine": "hwsim: machine/1\nuse: dgx-a100\n", "workload": workload})
    waits = [wait for lane in uneven["lanes"] for wait in lane["wait"]]
    assert max(waits) > 0.5 * TICKS, "the rank that comes first waits for the other"
    assert {lane["times"] for lane in uneven["lanes"]} == {1}


def test_of_too_many_rows_each_kind_is_seen(desk: WorkerState) -> None:
    """64 rows of cores that decode must not hide the rows of GPUs and disks."""
    few = {"epochs": "1", "workload.pipeline.dataset.samples": "131072"}
    found = asked(desk, "run", texts("dgx-a100", "imagenet-epoch") | {"set": few})
    names = " ".join(lane["name"] for lane in found["lanes"])
    assert all(part in names for part in ("cpu", "gpu0", "disk"))
    assert found["lanes_left"] > 0
    assert sum(lane["times"] for lane in found["lanes"]) + found["lanes_left"] > 64
    assert any(piece[2] >= 0 for piece in found["path"])


def test_colours_stay_while_a_number_changes(desk: WorkerState) -> None:
    said = texts()
    before = asked(desk, "run", said)
    after = asked(desk, "run", said | {"set": {"machine.links.slot.bandwidth": "0.2 GB/s"}})
    assert before["bounds"][0][0] != after["bounds"][0][0], "another limit"
    assert dict(zip(before["names"], before["tints"], strict=True)) == dict(zip(after["names"], after["tints"], strict=True))


def test_a_wrong_prediction_is_recognised() -> None:
    run = hwsim.simulate("d2l-laptop", "d2l/async-loop")
    found = answer(run, Tints(), pixels=1000, part=(0, 1))["theories"]
    assert [pytest.approx(time, rel=1e-3) for _, time in found] == [42e-3, 30e-3, 30e-6], "12 + 30 ms, 30 ms, 30 us"


def test_an_op_has_its_numbers_and_its_reason(desk: WorkerState) -> None:
    found = asked(desk, "run", texts())
    piece = found["path"][-1]
    op = asked(desk, "op", texts() | {"op": piece[6]})
    assert piece[3] == "copy to CPU"
    assert any("1.665 GB/s" in numbers for _, _, numbers, _ in op["lines"])
    assert op["waits"] == "its predecessor matmul on gpu has ended"
    assert op["slack"] == "No slack: a delay of this op delays the end of the run."
    copies = next(lane for lane in found["lanes"] if found["names"][lane["name_of"][0]] == "copy to CPU")
    first = asked(desk, "op", texts() | {"op": copies["op"][0]})
    assert first["slack"] == "Slack 62.60 ms: a delay of this op up to this time does not delay the end of the run."
    assert desk.answered("op", texts() | {"op": 10**9})[0] == 400


def test_more_says_what_would_help(desk: WorkerState) -> None:
    found = asked(desk, "more", texts())
    best = found["helps"][0]
    assert best["factor"] > 1.3
    again = asked(desk, "run", texts() | {"set": dict(best["settings"])})
    assert again["seconds"] == pytest.approx(best["seconds"], rel=1e-12)
    assert found["derived"][0]["lines"]
    assert found["text"][0] == asked(desk, "run", texts())["text"]


def test_the_picture_is_of_the_machine(desk: WorkerState) -> None:
    found = asked(desk, "run", texts())
    drawn = asked(desk, "picture", texts())
    assert drawn["hash"] == found["picture"]
    assert asked(WorkerState(()), "machine", texts()) == drawn, "before a run, too"
    assert {box["id"] for box in drawn["boxes"]} == {"cpu", "gpu", "disk"}
    slot = next(line["id"] for line in drawn["lines"] if {line["a"], line["b"]} == {"cpu", "gpu"})
    run = hwsim.simulate(MACHINE, WORKLOAD)
    used = {row.capacity: row.utilization for row in run.usage}
    assert found["busy"][slot] == used["slot:gpu->cpu"]
    assert found["busy"]["gpu"] == pytest.approx(max(value for name, value in used.items() if name.startswith("gpu.")))


def test_a_curve_and_a_grid_are_runs(desk: WorkerState) -> None:
    path, values = "machine.links.slot.bandwidth", ["1 GB/s", "2 GB/s", "a lot"]
    points = asked(desk, "curve", texts() | {"path": path, "values": values})["points"]
    for text, seconds, limit, wanted in points[:2]:
        assert wanted is None
        run = hwsim.simulate(MACHINE, WORKLOAD, set={path: text})
        assert (seconds, limit) == (run.makespan_s, str(bounds_of(run.timeline, run.devices)[0].bound))
    if len(points) > 2:
        assert points[2][1] is None
    found = asked(desk, "grid", texts() | {"paths": [path, "times"], "steps": 3})
    first, second = found["axes"]
    assert first["values"][first["at"]] == "1.665 GB/s"
    assert len(found["answers"]) == len(first["values"]) * len(second["values"]) == 9
    at = [0, 2]
    run = hwsim.simulate(MACHINE, WORKLOAD, set={path: first["values"][0], "times": second["values"][2]})
    assert found["answers"][at[0] * 3 + at[1]] == run.makespan_s
    own = f"{first['at']},{second['at']}"
    assert found["runs"][own]["seconds"] == hwsim.simulate(MACHINE, WORKLOAD).makespan_s
    assert len(found["runs"]) == 5, "the axes through the file's own point"
    assert not found["stopped"]


@pytest.mark.parametrize(
    ("machine", "workload", "path"),
    [("web-server", "services/object-store", "services"), ("dgx-h100", "serving/embedding", "serving")],
)
def test_a_service_has_the_number_that_it_is_asked_for(desk: WorkerState, machine: str, workload: str, path: str) -> None:
    """Arrivals set the time of its run: it has no interval, and the time of an answer stands beside it."""
    found = asked(desk, "run", texts(machine, workload))
    run = Session(machine, workload).shown()
    assert found["interval"] is None
    assert found["measure"]["unit"] == "s"
    if path == "services":
        assert run.services is not None
        assert run.services.answers[0].latency is not None
        assert found["measure"]["value"] == run.services.answers[0].latency.at(0.99).value
        assert found["path"] == []
        assert sum(share for _, _, share in found["bounds"]) == pytest.approx(1)
        assert found["bounds"][0][0] == "waiting for wire nic0->nic1"
        told = asked(desk, "more", texts(machine, workload))
        assert told["text"] == [found["text"]]
        assert told["text"][0].startswith("A request of store above p99 takes")
        assert told["helps"] == [], "halving the time of requests is no change that anybody can make"
        assert {len(row["lines"]) > 0 for row in told["derived"]} == {True}
    else:
        assert found["measure"]["value"] in dict(run.serving[0].values()).values()
        assert found["measure"]["name"].startswith(("time to first token", "latency"))
        (point,) = asked(desk, "curve", texts(machine, workload) | {"path": "rate", "values": ["1e6 1/s"]})["points"]
        assert point[3]["name"].startswith("tokens per second"), "a curve says of each point which number it is"
        assert point[3]["unit"] == "1/s"
    assert asked(desk, "run", texts())["measure"] is None


def test_what_is_exported_is_the_run(desk: WorkerState) -> None:
    settings = {"times": "20", "machine.links.slot.bandwidth": "3 GB/s", "machine.gpu.copies.setup": "9 us"}
    for some in ({}, {"times": "20", "machine.links.slot.bandwidth": "3 GB/s"}, settings):
        found = asked(desk, "exported", texts() | {"set": some})
        run = Session(MACHINE, WORKLOAD).shown(some)
        assert Session(found["machine"], found["workload"]).shown().makespan_s == run.makespan_s
        assert "# This is a tenth of the bandwidth" in found["machine"] or len(some) == 3
        assert "# Matmuls without copies" in found["workload"], "comments stay"


def test_mistakes_have_their_place(desk: WorkerState) -> None:
    said = texts()
    machine = said["machine"].replace("parts:", "prats:")
    for door in ("run", "sliders"):
        found = asked(desk, door, said | {"machine": machine, "workload": said["workload"] + "notes: [\n", "set": {}})["mistakes"]
        assert found
        assert {mistake["file"] for mistake in found} <= {"machine", "workload"}
    line = machine[: machine.index("prats")].count("\n") + 1
    found = asked(desk, "run", said | {"machine": machine})["mistakes"]
    misspelt = next(mistake for mistake in found if "prats" in mistake["text"])
    assert (misspelt["file"], misspelt["line"], misspelt["column"]) == ("machine", line, 1)
    assert "parts" in misspelt["hint"]
    (only,) = asked(desk, "run", said | {"set": {"tims": "3"}})["mistakes"]
    assert (only["file"], only["path"]) == ("set", "tims")
    assert "times" in only["hint"]


ALIASES: Final = "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: &d [*c, *c, *c]\ne: [*d, *d, *d, *d]\n"
JUNK: Final[list[Any]] = [
    None, True, 0, -1, 1e308, "", "x", "\x00", "\ud800", [], {}, [[]], {"a": {}}, "$" * 500, "a: " * 3000, "- " * 3000,
    "{" * 3000, "&a [*a, *a]", "!!python/object:os.system x", "hwsim: machine/1\nuse: /etc/passwd\n", 10**400, [0, 1], [1, 0],
    "hwsim: workload/1\nprogram: [" * 9, "<img src=x onerror=alert(1)>", "../../etc/passwd", "machine.gpu.use", ["a"] * 51, "-",
    "~root/x.yaml", ALIASES,
]  # fmt: skip


def test_hostile_questions_are_answered_or_refused(desk: WorkerState) -> None:
    """A thousand of them, none of which ends it, prints a line of another file, or is called a defect."""
    dice = random.Random(11)
    own = texts() | {"set": {}, "file": "machine", "op": 1, "path": "times", "values": ["2"]}
    own |= {"paths": ["times"], "steps": 2, "kind": "machine", "name": MACHINE, "pixels": 100, "part": [0, 1]}
    doors, counts = sorted(HAND | REST), {200: 0, 400: 0, 500: 0}
    weights = [1 if door in ("more", "grid", "saved", "effects") else 12 for door in doors]  # these take longest
    for _ in range(1000):
        said = dict(own)
        for key in dice.sample(sorted(own), dice.randrange(1, 4)):
            said[key] = dice.choice(JUNK)
            if key == "set" and dice.random() < 0.5:
                said[key] = {
                    dice.choice(["machine.gpu.use", "n", "", "a.b.c", "\x00"]): dice.choice(
                        [junk for junk in JUNK if isinstance(junk, str)]
                    )
                }
        if dice.random() < 0.1:
            del said[dice.choice(sorted(said))]
        status, text = desk.answered(dice.choices(doors, weights)[0], said)
        counts[status] += 1
        assert status in (200, 400), text
        assert b"root:" not in text
    assert counts[400] > 100 < counts[200]
    assert asked(desk, "run", texts())["seconds"] > 0


@pytest.mark.parametrize(
    ("settings", "most"),
    [({"machine.links.slot.bandwidth": "{} GB/s"}, 15), ({"times": "50{}"}, 15), ({"times": "500{}"}, 30)],
)
def test_a_drag_takes_milliseconds(desk: WorkerState, settings: dict[str, str], most: float) -> None:
    """Bounds of 15 ms and 30 ms of CPU, where a loop of a million turns takes about 30 ms."""
    drags = [texts() | {"set": {key: value.format(1 + step) for key, value in settings.items()}} for step in range(6)]
    asked(desk, "run", drags[0])
    assert min(effort(partial(asked, desk, "run", drag)) for drag in drags[1:]) < most / 30
