"""Reports: what they say, that viewers accept it, and that same results give same bytes."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.demand import Capacity, Cost, Demand, Requests
from hwsim.engine import simulate
from hwsim.graph.builder import GraphBuilder
from hwsim.results.activities import MOST, Activity, activities
from hwsim.results.critical import families, limited_by
from hwsim.results.expect import Verdict
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.results.usage import usage
from hwsim.spec import Warning
from hwsim.views import FIGURES, VIEWS, view
from hwsim.views.gantt import draw as gantt
from hwsim.views.kit.file_output import write
from hwsim.views.kit.lanes import lanes
from hwsim.views.kit.lines import labelled_lines
from hwsim.views.report import run_page
from hwsim.views.summary import document as as_json
from hwsim.views.summary import html
from hwsim.views.summary import say as summary
from hwsim.views.summary.capacities import capacities
from hwsim.views.trace import write as trace


def result(steps: int = 3, **more: Any) -> Result:
    """A host thread that issues kernels to two GPUs, and copies beside them that share a link."""
    rates = [
        Capacity("bus:cpu->gpu0", 16e9, "B", "way", link="bus", ends=("cpu", "gpu0")),
        *(Capacity.of(f"gpu{n}", "compute") for n in range(4)),
    ]
    builder = GraphBuilder(rates)
    host = builder.queue("main", "cpu")
    streams = [builder.queue("compute", f"gpu{n}") for n in range(2)]
    with builder.repeat(steps):
        for n, stream in enumerate(streams):
            issued = builder.op("issue train", kind="host", device="cpu", queue=host, time=1e-5)
            cost = Cost(Demand(amounts=((f"gpu{n}.compute", 1e-3),), floor=1e-3), moved=((f"gpu{n}.compute", 2e9, "FLOP"),))
            builder.op("train", kind="busy", device=f"gpu{n}", cost=cost, queue=stream, insert=issued, after=[issued])
        for _ in range(2):
            copied = builder.op("copy", kind="copy", device="gpu0", cost=Cost(Demand(1e-6, ((rates[0].name, 8e6),), share=8e6)))
            builder.edge(copied, copied, lag=1)
    builder.op("done")
    timeline = simulate(builder.build())
    kinds = {"cpu": "cpu", **{f"gpu{n}": "gpu" for n in range(4)}}
    return Result("a <box>", "three steps", timeline, usage(timeline), devices=kinds, **more)


def events(given: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(b"".join(trace.render(given)), parse_float=Decimal)["traceEvents"]
    return found


# ---- all of them


WRITTEN: dict[str, Callable[[Result], Iterable[bytes]]] = {
    "gantt": lambda given: FIGURES["gantt"](given, ".svg"),
    "memory": lambda given: FIGURES["memory"](given, ".svg"),
    "page": run_page.render,
    "trace": lambda given: trace.render(given, ".gz"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_same_result_same_bytes_of_an_empty_run_too(name: str) -> None:
    timeline = simulate(GraphBuilder([Capacity("gpu0.compute", 1.0)]).build())
    empty = Result("m", "w", timeline, usage(timeline))
    for first, second in ((result(), result()), (empty, empty)):
        one, two = (b"".join(WRITTEN[name](run)) for run in (first, second))
        assert one == two
        assert one


@pytest.mark.parametrize("name", [*VIEWS, "topology"])
def test_a_view_has_its_functions_and_they_take_its_options(name: str) -> None:
    shown = view(name)
    arguments = {key for path in ("find.find", "say.text") for key in signature(shown.function(path)).parameters}
    assert {option.name for option in shown.options} <= arguments
    assert list(signature(shown.function("say.document")).parameters)
    assert not shown.plots or len(signature(shown.function("draw.figure")).parameters) == 3


# ---- text


def test_the_summary_reads_well_at_100_columns() -> None:
    verdicts = (
        Verdict("makespan", "3 ms +- 1 %", "violated", 0.0031, "it is 3.10 ms"),
        Verdict("big.step", "at most 2 s", "skipped", None, "this run was changed with --set"),
    )
    text = summary.summary(
        result(verdicts=verdicts, settings=(("n", "3"),), warnings=(Warning("lone-barrier", "a long warning " * 20),)),
        verbose=True,
    )
    assert max(map(len, text.splitlines())) <= 100
    violated, title, _, first = text.splitlines()[:4]
    assert violated.endswith("it is 3.10 ms")
    assert title == "three steps, on a <box>"
    assert first.split() == ["time", "3.02", "ms"]
    assert "not checked (this run was changed with --set)" in text
    assert "n=3" in text


def rows_of(timeline: Timeline) -> tuple[Activity, ...]:
    return activities(Result("m", "w", timeline, usage(timeline))).rows


def test_a_run_of_few_kinds_of_ops_says_what_each_took() -> None:
    rows = {row.name: row for row in activities(result()).rows}
    assert rows["train"].count == 6
    assert rows["train"].mean_s == pytest.approx(1e-3)
    assert rows["train"].rates.amount == pytest.approx(2e12)
    assert rows["train"].rates.unit == "FLOP/s"
    assert str(rows["train"].bound) == "GPU compute"
    assert rows["copy"].count == 6


def test_ops_that_share_a_link_are_told_the_rate_that_each_had() -> None:
    builder = GraphBuilder([Capacity("bus:a->b", 10.0, "B", "way", link="bus", ends=("a", "b"))])
    for _ in range(2):
        builder.op(
            "copy", device="a", cost=Cost(Demand(amounts=(("bus:a->b", 10.0),), share=10.0), moved=(("bus:a->b", 10.0, "B"),))
        )
    (row,) = rows_of(simulate(builder.build()))
    assert row.mean_s == pytest.approx(2.0)
    assert (row.count, row.rates, str(row.bound)) == (2, (5.0, "B/s", 0.0), "link bus a->b")


def test_accesses_are_counted_and_their_bytes_are_those_asked_for() -> None:
    builder = GraphBuilder([Capacity.of("m", "memory")])
    asked = Requests(device="m", count=1000, size=8.0)
    cost = Cost(Demand(amounts=(("m.memory", 2.0),)), moved=(("m.memory", 64e3, "B"),), requests=asked)
    builder.op("look up", device="m", cost=cost)
    (row,) = rows_of(simulate(builder.build()))
    assert row.rates == (4e3, "B/s", 500.0)


def test_a_run_of_many_kinds_of_ops_gets_a_row_of_each_kind_of_work() -> None:
    builder = GraphBuilder([])
    for n in range(MOST + 1):
        builder.op(f"step {'abcdefghijklmnop'[n]}", kind="busy", device="cpu", time=1e-3)
    (row,) = rows_of(simulate(builder.build()))
    assert (row.name, row.count) == ("fixed duration", MOST + 1)


def test_capacities_of_a_family_are_one_row_only_if_they_look_alike() -> None:
    names = [f"gpu{n}.compute" for n in range(12)]
    builder = GraphBuilder([Capacity(name, 1.0) for name in names])
    for name in names[:11]:
        builder.op("train", device="gpu", cost=Cost(Demand(amounts=((name, 1e-3),))))
    builder.op("train", device="gpu", cost=Cost(Demand(amounts=((names[11], 2e-3),))))
    rows, unused = capacities(usage(simulate(builder.build())))
    assert [row.utilization for row in rows] == [1.0, 0.5]
    assert unused == []


def test_causes_of_a_family_are_added_up() -> None:
    from hwsim.results.cause import Cause
    from hwsim.results.critical import Share

    shares = [Share(Cause("capacity", f"gpu{n}.compute"), 1, 0.2) for n in range(3)] + [Share(Cause("latency", "cpu"), 2, 0.4)]
    assert families(shares) == [("gpu*.compute", 3, pytest.approx(0.6)), ("latency on cpu", 2, 0.4)]


# ---- JSON


def test_ops_are_in_the_document_only_when_asked_for() -> None:
    found = json.loads(as_json.document(result(), ops=True))
    assert found["op_count"] == len(found["ops"]) == 18
    assert set(found["ops"][0]) == {
        "op", "name", "kind", "device", "queue", "program", "iteration", "start_s", "end_s", "duration_s",
        "waiting_s",
    }  # fmt: skip


# ---- HTML


def test_names_are_escaped_in_html() -> None:
    text = html.fragment(result())
    assert "a &lt;box&gt;" in text
    assert "<box>" not in text
    assert text.count("<tr>") == 1 + len(capacities(result().usage)[0])


# ---- the trace


def test_every_op_with_a_device_is_one_slice_with_its_exact_time() -> None:
    given = result()
    slices = {event["args"]["op"]: event for event in events(given) if "op" in event.get("args", {})}
    assert len(slices) == len(given.ops)
    for row in given.ops:
        event = slices[row.op]
        assert event["args"].get("name", event["name"]) == row.name
        assert Decimal(event["ts"]) * 10**9 == int(given.timeline.start[row.op])
        assert Decimal(event["dur"]) * 10**9 == int(given.timeline.end[row.op] - given.timeline.start[row.op])


def assert_nested(slices: list[tuple[Decimal, Decimal]]) -> None:
    open_until: list[Decimal] = []
    for start, end in sorted(slices, key=lambda pair: (pair[0], -pair[1])):
        while open_until and open_until[-1] <= start:
            open_until.pop()
        assert not open_until or end <= open_until[-1]
        open_until.append(end)


def test_slices_of_a_track_nest_or_are_disjoint() -> None:
    tracks = defaultdict(list)
    for event in events(result()):
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((Decimal(event["ts"]), Decimal(event["ts"]) + Decimal(event["dur"])))
    assert len(tracks) == 7  # the host and the program, two streams, two copies at a time, what threads wait for
    for slices in tracks.values():
        assert_nested(slices)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 10)), max_size=30))
def test_lanes_hold_ops_that_do_not_overlap_and_are_as_few_as_can_be(pairs: list[tuple[int, int]]) -> None:
    builder = GraphBuilder([])
    for start, length in pairs:
        before = builder.op("wait", time=start * 1e-3)
        builder.op("work", device="cpu", time=length * 1e-3, after=[before])
    timeline = simulate(builder.build())
    found = lanes(Result("m", "w", timeline))
    for lane in found:
        assert (timeline.start[lane.ops][1:] >= timeline.end[lane.ops][:-1]).all()
    ops = Result("m", "w", timeline).ops.numbers
    assert sorted(op for lane in found for op in lane.ops.tolist()) == ops.tolist()
    starts, ends = timeline.start[ops], timeline.end[ops]
    deepest = max((int(((starts <= instant) & (ends > instant)).sum()) for instant in starts), default=0)
    if all(length for _, length in pairs):
        assert len(found) == deepest


def test_an_arrow_leads_from_the_issuing_op_to_what_it_issued() -> None:
    found = events(result())
    issued = {event["args"]["correlation"]: event for event in found if event.get("cat") in {"kernel", "gpu_memcpy"}}
    calls = {event["args"]["correlation"]: event for event in found if event.get("cat") == "cuda_runtime"}
    ops = {event["args"]["External id"]: event for event in found if event.get("cat") == "cpu_op"}
    starts = {event["id"]: event for event in found if event["ph"] == "s"}
    ends = {event["id"]: event for event in found if event["ph"] == "f"}
    assert set(starts) == set(ends) == set(issued)
    assert len(starts) == 12
    for number, end in ends.items():
        call, start = calls[number], starts[number]
        assert (end["pid"], end["tid"], end["ts"]) == (issued[number]["pid"], issued[number]["tid"], issued[number]["ts"])
        assert (start["pid"], start["tid"], start["ts"]) == (call["pid"], call["tid"], call["ts"])
        if "External id" in call["args"]:  # it lies in the op that issued it
            around = ops[call["args"]["External id"]]
            assert around["ts"] <= call["ts"] <= call["ts"] + call["dur"] <= around["ts"] + around["dur"] <= end["ts"]
            assert issued[number]["args"]["External id"] == call["args"]["External id"]
    assert sum("External id" in call["args"] for call in calls.values()) == 6


def test_categories_are_what_kineto_writes() -> None:
    found = {(event["name"], event["cat"]) for event in events(result()) if event["ph"] == "X"}
    assert found == {
        ("issue train", "cpu_op"),
        ("train", "kernel"),
        ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"),
        ("cudaLaunchKernel", "cuda_runtime"),
        ("cudaMemcpyAsync", "cuda_runtime"),
        ("cudaDeviceSynchronize", "cuda_runtime"),
        ("Context Sync", "cuda_sync"),
        *((f"ProfilerStep#{step}", "user_annotation") for step in range(4)),
    }


def test_devices_are_processes_and_queues_threads() -> None:
    found = [
        (event["name"], event["args"]["name"]) for event in events(result()) if event["name"] in {"process_name", "thread_name"}
    ]
    assert [name for kind, name in found if kind == "process_name"] == ["gpu0", "gpu1", "cpu", "program"]
    threads = [name for kind, name in found if kind == "thread_name"]
    assert threads == ["compute", "unqueued", "unqueued 2", "compute", "main", "rank 0"]


def test_a_packed_trace_is_the_same_trace() -> None:
    plain, packed = (b"".join(trace.render(result(), suffix)) for suffix in (".json", ".json.gz"))
    assert gzip.decompress(packed) == plain
    assert packed[4:8] == bytes(4)  # no time stamp


def test_a_trace_of_more_events_than_a_chunk_is_whole() -> None:
    given = result(steps=2000)
    assert sum("op" in event.get("args", {}) for event in events(given)) == len(given.ops) > trace.CHUNK


# ---- figures


def test_a_figure_of_many_ops_stays_small() -> None:
    assert len(b"".join(gantt.render(result(steps=5000), ".svg"))) < 3_000_000


# ---- files


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("before")

    def broken() -> Any:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(path, broken())
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    write(path, [b"af", b"ter"])
    assert path.read_text() == "after"


def test_a_missing_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write(tmp_path / "nowhere" / "out.json", [b""])


def test_a_link_is_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write(link, [b"new"])
    assert link.is_symlink()
    assert target.read_text() == "new"


Drawn = tuple[str, float, dict[str, float], dict[str, Any]]  # device, own time, what is drawn, latency and floor


@pytest.mark.parametrize(
    ("drawn", "ops", "first"),
    [
        ([("memory", "slow"), ("uplink", "limit")],
         [("d", 0.0, {"memory.slow": 1e-3}, {"floor": 10e-3}), ("e", 0.0, {"uplink.limit": 9e-3}, {})], "uplink limit"),
        ([("disk", "media"), ("cpu", "cores")],
         [("disk", 0.0, {"disk.media": 1e-3}, {"floor": 10e-3}), ("cpu", 0.0, {"cpu.cores": 9e-3}, {})], "disk"),
        ([("gpu", "memory"), ("slot", "")], [("gpu", 0.0, {"gpu.memory": 1e-3, "slot.": 10e-3}, {"latency": 1.0})], "slot."),
        ([("slot", ""), ("gpu", "compute")],
         [("", 1.0, {}, {}), ("gpu", 0.0, {"slot.": 1e-3}, {}), ("gpu", 0.0, {"gpu.compute": 2e-3}, {})], "gpu compute"),
    ],
    ids=["a capacity", "a device by more than a capacity", "not by latency", "not by time of no device"],
)  # fmt: skip
def test_what_limits_stands_first_however_busy_others_are(drawn: list[tuple[str, str]], ops: list[Drawn], first: str) -> None:
    builder = GraphBuilder([Capacity.of(*pair) if pair[1] else Capacity(f"{pair[0]}.", 1.0) for pair in drawn])
    for device, time, amounts, more in ops:
        builder.op("x", device=device, time=time, cost=Cost(Demand(amounts=tuple(amounts.items()), **more)) if amounts else None)
    timeline = simulate(builder.build())
    rows, _ = capacities(usage(timeline), limited_by(timeline))
    assert rows[0].name == first


def test_what_is_counted_is_not_called_bytes() -> None:
    builder = GraphBuilder([Capacity("nic.messages", 100.0, "1")])
    builder.op("send", device="nic", cost=Cost(Demand(amounts=(("nic.messages", 7.0),)), moved=(("nic.messages", 7.0, "B"),)))
    (row,) = usage(simulate(builder.build()))
    assert (row.moved, row.unit) == (7.0, "1")


@given(st.integers(1, 60))
def test_a_number_and_its_per_cent_sign_stand_on_one_line(words: int) -> None:
    lines = labelled_lines("limited by", ", ".join(["a" * words, *(f"part{number} 0.{number} %" for number in range(10, 40))]))
    assert not any(line.lstrip().startswith("%") for line in lines)
    assert max(map(len, lines)) <= 100
