from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.spec import SpecError
from hwsim.studies import pool, study_run
from hwsim.studies.grid import MAX_STUDY_POINTS, grid, parse_values, parse_vary, value_text
from hwsim.studies.page import render
from hwsim.studies.point import Outcome, run_point
from hwsim.studies.study_run import Interrupted
from hwsim.studies.sweeps import sweep
from hwsim.studies.table import Sweep

MACHINE = {"hwsim": "machine/1", "class": "ideal", "name": "one core", "parts": {"cpu": {"kind": "cpu", "use": "d2l-laptop-cpu"}}}
WORKLOAD = """\
hwsim: workload/1
name: a loop
let: {n: 4, time: 10 us, wait: 0 us}
runtime: {dispatch: $wait}
program:
  - repeat: {times: $n, do: [{busy: {name: a, device: cpu, time: $time}}]}
"""


TOLD = "makespan_s,low_s,high_s,speedup,work,bottleneck,share,warnings,error"  # columns of every study


class Backwards(Executor):
    """Runs nothing before so many tasks are there, then the last first."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.ran = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        for waiting, task in reversed(self.waiting) if len(self.waiting) == self.tasks else ():
            self.ran += 1
            waiting.set_result(task())
        return future


@contextmanager
def switching_often() -> Iterator[None]:
    """Threads take turns 500 times as often as by default, so that what they must not share is seen."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# ---- the grid

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=8)
VALUES = st.lists(st.one_of(st.integers(), st.booleans(), st.sampled_from(["ring", "tree", "8 GB/s"])), min_size=1, max_size=5)


@given(st.dictionaries(st.sampled_from(["a", "b", "machine.gpu.count", "d"]), VALUES, min_size=1))
def test_a_grid_is_every_combination_in_the_order_given(vary: dict[str, list[object]]) -> None:
    points = grid(vary)
    different = [
        [value for index, value in enumerate(values) if value_text(value) not in map(value_text, values[:index])]
        for values in vary.values()
    ]
    assert points.paths == tuple(vary)
    assert [list(map(value_text, point)) for point in points] == [list(map(value_text, point)) for point in product(*different)]
    assert len(points) == math.prod(map(len, different)) == len({tuple(map(value_text, point)) for point in points})


def test_a_grid_of_too_many_points_is_refused_before_it_is_made() -> None:
    assert len(grid({"a": "1..100", "b": "1..100"})) == MAX_STUDY_POINTS
    with pytest.raises(SpecError, match="101 x 100 = 10100 points exceed the limit of 10000"):
        grid({"a": "1..101", "b": "1..100"})
    with pytest.raises(SpecError, match="exceed the limit"):
        grid(dict.fromkeys("abcdefghijklmnop", "1..90000"))


@pytest.mark.parametrize("vary", [{}, {"a": []}, {"a": ""}, {"a": "1,,2"}, {"a": "5..1"}, {"a": "1 GB..2 s:x2"}, {"a": "["}])
def test_a_grid_without_sense_is_a_mistake(vary: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        grid(vary)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,4", (1, 2, 4)),
        (" 1 , 2.5 ", (1, 2.5)),
        ("1..4", (1, 2, 3, 4)),
        ("1..1000:log", (1, 2, 5, 10, 22, 46, 100, 215, 464, 1000)),
        ("0,1..4:x2,100", (0, 1, 2, 4, 100)),
        ("ring,tree", ("ring", "tree")),
        ("true,false", (True, False)),
        ("8 GB/s,16 GB/s", ("8 GB/s", "16 GB/s")),
        ("512 KiB..2 MiB:x2", ("512 KiB", "1 MiB", "2 MiB")),
        ("10 us..30 us:+10 us", ("10 us", "20 us", "30 us")),
        ("4 KiB..16 KiB:x1.25", ("4 KiB", "5 KiB", "6.4 kB", "8 kB", "10 kB", "12.5 kB", "15.625 kB")),
        ("1 kB..3 kB:x1.3", ("1 kB", "1.3 kB", "1.69 kB", "2.197 kB", "2.856 kB")),  # 2.8561
        ("1 h..4 h:x2", ("60 min", "2 h", "4 h")),
        ("node0..3,gpu*", ("node0..3", "gpu*")),
        ("[a, b],{c: 1, d: 2}", ("[a, b]", "{c: 1, d: 2}")),
        ("'a, b',c", ("'a, b'", "c")),
        ("don't,do", ("don't", "do")),
    ],
)
def test_values_are_read_as_written(text: str, values: tuple[object, ...]) -> None:
    found = parse_values(text)
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


@given(TEXTS)
def test_any_text_is_values_or_a_mistake(text: str) -> None:
    try:
        found = parse_values(text, "a")
    except SpecError:
        return
    assert found


@pytest.mark.parametrize("text", ["", "a", "=1", " =1", "a=", "a=1,", "a=0..8:x2", "a=1 GB..2 GB"])
def test_what_cannot_be_varied_is_a_mistake(text: str) -> None:
    with pytest.raises(SpecError):
        parse_vary(text)


def test_a_range_with_a_step_that_has_no_sign_says_both() -> None:
    with pytest.raises(SpecError, match=re.escape("write '7000..8000:+100' or '7000..8000:x100'")):
        parse_vary("n=7000..8000:100")


def test_a_mistake_among_values_is_pointed_at() -> None:
    with pytest.raises(SpecError) as caught:
        parse_vary("depth=1,8..2")
    assert str(caught.value).splitlines()[:3] == [
        "--vary:1:9: the lower limit of '8..2' is above the upper limit",
        "    depth=1,8..2",
        "            ^",
    ]


# ---- running


def test_points_have_the_time_and_the_cause_of_a_single_run() -> None:
    found = sweep(MACHINE, WORKLOAD, {"n": [1, 2, 3], "time": "10 us,20 us"}, by="time")
    assert found.columns == ("n", "time [s]", *TOLD.split(","))
    assert [row.values for row in found.rows] == list(product([1, 2, 3], ["10 us", "20 us"]))
    assert [row.makespan_s for row in found.rows] == [10e-6, 20e-6, 20e-6, 40e-6, 30e-6, 60e-6]
    assert found.speedups == (None,) * 6, "neither more ops nor longer ones are the same work"
    assert {(row.bottleneck, row.share, row.error) for row in found.rows} == {("a on cpu", 1.0, "")}
    assert (found.machine, found.workload) == ("one core", "a loop")


def test_rows_are_in_the_order_of_the_grid_whatever_finishes_first() -> None:
    vary = {"n": "1..3", "time": "10 us,20 us,x"}
    here = sweep(MACHINE, WORKLOAD, vary, workers=1)
    executor = Backwards(9)
    assert sweep(MACHINE, WORKLOAD, vary, executor=executor) == here
    assert executor.ran == len(here.rows) == 9
    with ThreadPoolExecutor(3) as threads, switching_often():
        assert sweep(MACHINE, WORKLOAD, vary, executor=threads) == here
        assert threads.submit(int).result() == 0, "somebody else's executor is left running"


def test_a_point_that_fails_is_a_row() -> None:
    found = sweep(MACHINE, WORKLOAD, {"n": [1, -1], "machine.cpu.use": ["d2l-laptop-cpu", "no-such-cpu"]})
    assert [row.makespan_s for row in found.rows] == [10e-6, None, None, None]
    assert [bool(row.error) for row in found.rows] == [False, True, True, True]
    assert "there is no cpu 'no-such-cpu'" in found.rows[1].error
    assert found.speedups == (1, None, None, None)
    assert not any("\n" in row.error for row in found.rows)


def test_speed_ups_are_relative_to_the_first_point_that_did_not_fail() -> None:
    found = sweep(MACHINE, WORKLOAD, {"wait": ["x", "30 us", "0 us"]})
    assert found.speedups[:2] == (None, 1.0)
    assert found.speedups[2] == pytest.approx(13 / 4)
    assert sweep(MACHINE, WORKLOAD, {"time": ["x", "y"]}).speedups == (None, None)


def test_every_reason_to_fail_is_told_in_full_below_the_table_once() -> None:
    found = sweep(MACHINE, WORKLOAD, {"n": [2, 3], "machine.cpu.use": ["d2l-laptop-cpu", "no-such-cpu", "neither-this-cpu"]})
    for number, error in enumerate(dict.fromkeys(row.error for row in found.failed), 1):
        assert str(found).count(f"({number}) {error}") == 1
        assert str(found).count(f"failed ({number})") == 2


def test_mistakes_that_all_points_share_are_raised() -> None:
    for machine, workload in (("no-such-machine", WORKLOAD), (MACHINE, "no-such-workload")):
        with pytest.raises(SpecError, match="no-such"):
            sweep(machine, workload, {"n": [1]})
    with pytest.raises(SpecError, match="'n' is both set and varied"):
        sweep(MACHINE, WORKLOAD, {"n": [1]}, set={"n": 2})
    with pytest.raises(SpecError, match="at least one worker"):
        sweep(MACHINE, WORKLOAD, {"n": [1]}, workers=0)


def test_a_process_that_dies_loses_its_points_and_not_the_study() -> None:
    class Broken(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise BrokenExecutor("a process died")

    found = sweep(MACHINE, WORKLOAD, {"n": [1, 2]}, executor=Broken())
    assert [row.error.startswith(pool.LOST) for row in found.rows] == [True] * 2


def test_ctrl_c_takes_back_what_a_borrowed_executor_has_not_begun() -> None:
    def stop(done: int, points: int) -> None:
        raise KeyboardInterrupt

    executor = Backwards(1)  # runs the first task, and never another
    with pytest.raises(Interrupted):
        sweep(MACHINE, WORKLOAD, {"n": "1..5"}, executor=executor, progress=stop)
    assert [future.cancelled() for future, _ in executor.waiting] == [False, True, True, True, True]


def test_ctrl_c_ends_the_processes_too() -> None:
    import multiprocessing

    def stop(done: int, points: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        sweep(MACHINE, WORKLOAD, {"n": "1..50"}, workers=2, progress=stop)
    assert len(caught.value.sweep.rows) == 1
    until = time.monotonic() + 60
    while multiprocessing.active_children() and time.monotonic() < until:  # join() gives up where the pool joins it, too
        time.sleep(0.05)
    assert multiprocessing.active_children() == []


# ---- what comes out


def test_the_table_reads_well() -> None:
    found = sweep(
        MACHINE,
        WORKLOAD,
        {"wait": ["30 us", "0 us"], "machine.cpu.use": ["d2l-laptop-cpu", "no-such-cpu"]},
        set={"time": "10 us"},
    )
    assert str(found).splitlines() == [
        "a loop, on one core: time by wait and cpu type",
        "",
        "  set            time=10 us",
        "",
        "   wait  cpu type           time  speedup  bottleneck",
        "  30 us  d2l-laptop-cpu   130 us    1.00x  host CPU 92 %",
        "  30 us  no-such-cpu           -        -  failed (1)",
        "   0 us  d2l-laptop-cpu  40.0 us    3.25x  a on cpu 100 %",
        "   0 us  no-such-cpu           -        -  failed (1)",
        "",
        "  fastest        40.0 us at wait 0 us, cpu type d2l-laptop-cpu",
        "  failed         2 of 4 points",
        "                 (1) there is no cpu 'no-such-cpu' in the library",
    ]


@given(st.integers(1, 6), st.integers(1, 60), st.text(min_size=1, max_size=60), st.text(max_size=200))
def test_the_table_is_100_columns_wide(paths: int, length: int, value: str, error: str) -> None:
    vary = tuple((f"{'machine.' * (length // 8)}p{place}.{'x' * length}", (value, 1)) for place in range(paths))
    row = Outcome(1.0, "gpu*.compute", 0.5).at((value,) * paths)
    found = Sweep("m" * 20, "w" * 20, (("a", "b"),), vary, 2**paths, (row, Outcome(error=error or "x").at(row.values)))
    table = str(found).split("\n\n")[1].splitlines()
    assert max(map(len, table)) <= 100


# ---- resuming


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The points that were really run."""
    ran: list[dict[str, object]] = []

    def counting(machine: Any, workload: Any, point: Any, wanted: Any, study: str) -> Outcome:
        ran.append(dict(point))
        return run_point(machine, workload, point, wanted, study)

    monkeypatch.setattr(study_run, "run_point", counting)
    return ran


# ---- what runs have beside their time

PIPELINE = """\
hwsim: workload/1
let: {time: 10 us}
pipeline: {batches: 8, stages: [{busy: {name: a, device: cpu, time: $time}}]}
"""


def test_a_study_of_pipelines_has_their_pace_in_table_and_json() -> None:
    found = sweep(MACHINE, PIPELINE, {"time": ["10 us", "20 us"]})
    assert found.measured == ("batches_per_s", "busy")
    assert [dict(row.measures)["batches_per_s"] for row in found.rows] == pytest.approx([1e5, 5e4])
    assert "batches/s" in str(found)
    assert found.to_json()["rows"][0]["measures"]["batches_per_s"] == pytest.approx(1e5)


def test_a_notebook_has_the_columns_of_the_text() -> None:
    for values in (["10 us", "20 us"], ["20 us", "10 us"]):
        found = sweep(MACHINE, PIPELINE, {"time": values}, by="batches/s")
        heads = re.findall(r"<th>(.*?)</th>", found._repr_html_())
        assert heads == re.split(r"  +", str(found).splitlines()[2].strip())
        assert heads[heads.index("batches/s") + 1] == "vs first", "the ratio follows the numbers that it compares"
        assert re.search(r"<th[^>]*>(<[^>]*>)*vs first", "".join(chunk.decode() for chunk in render(found)))


def test_no_point_of_a_service_is_called_the_fastest() -> None:
    row = Outcome(1.0, "x", 1.0, "", (("requests_per_s", 2.0),)).at((1,))
    found = Sweep("m", "w", (), (("rate", (1, 2)),), 2, (row, row.at((2,))))
    assert "fastest" not in str(found)
    assert "requests/s" in str(found)
    assert found.speedups == (None, None)


def test_a_long_reason_to_fail_is_cut_in_the_table_and_whole_in_json() -> None:
    found = Sweep("m", "w", (), (("n", (1,)),), 1, (Outcome(error="word " * 100).at((1,)),))
    assert max(map(len, str(found).splitlines())) <= 100
    assert found.to_json()["rows"][0]["error"] == "word " * 100
