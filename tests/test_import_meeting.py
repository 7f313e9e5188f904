"""Which kernels of several ranks are one collective: the same whatever the order of files and events, or the clock.

Runs are made by hand: four ranks, tensor parallel pairs and data parallel pairs, where each collective is known by its step.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hwsim import engine
from hwsim.importers.kineto import trace as kineto
from hwsim.importers.recording import Recording
from hwsim.importers.replay import RecordingReplay, explain
from tests.traces import write_kineto

US = 10**9  # fs
EPOCH = 1_717_171_717_171_717  # us since 1970
TP, DP = [(0, 1), (2, 3)], [(0, 2), (1, 3)]
GROUPS = {str(number): ranks for number, ranks in enumerate([*TP, *DP])}
Event = dict[str, Any]


def events(steps: int = 4, *, seed: int = 1) -> list[list[Event]]:
    """Kernels of four ranks, in us: a product, a collective of its pair, a product, a collective of the other pair."""
    draw, ready = random.Random(seed), [0, 0, 0, 0]
    ranks: list[list[Event]] = [[], [], [], []]
    for step in range(steps):
        for name, groups, length in (("tp", TP, 300), ("dp", DP, 500)):
            for rank, of_rank in enumerate(ranks):
                took = draw.randrange(1000, 9000)
                of_rank.append({"name": "gemm", "start": ready[rank], "length": took, "stream": 7})
                ready[rank] += took
            for group in groups:
                end = max(ready[rank] for rank in group) + length
                for rank in group:
                    ranks[rank].append({
                        "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "start": ready[rank], "length": end - ready[rank],
                        "stream": 20 if name == "tp" else 24, "group": group, "id": f"{name} {step} {min(group)}",
                    })  # fmt: skip
                    ready[rank] = end
    return ranks


def as_kineto(folder: Path, ranks: list[list[Event]], first: int = EPOCH, *, ranked: bool = True, size: int = 0) -> Recording:
    """Ranks without events are left out. ranked: collectives say the ranks of their group; size: else how many they are."""
    files = []
    for rank, of_rank in enumerate(ranks):
        written = []
        for span in of_rank:
            args = {"device": 0, "stream": span["stream"]}
            if "group" in span:
                args |= {"Collective name": "allreduce", "In msg nelems": 4096, "Out msg nelems": 4096, "dtype": "Float",
                         "Process Group Name": named(span["group"])}  # fmt: skip
                args |= {"Process Group Ranks": str(list(span["group"])), "Group size": 2} if ranked else {"Group size": size}
                if not ranked:
                    args["Process Group Name"] = "tp" if span["stream"] == 20 else "dp"
            times = {"ts": first + span["start"], "dur": span["length"]}
            written.append(
                {"ph": "X", "cat": "kernel", "name": span["name"], "pid": 0, "tid": span["stream"], **times, "args": args}
            )
        document = {"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": written}
        if written:
            files.append(write_kineto(folder / f"rank{rank}.json", document))
    return kineto.read(files)


def named(group: tuple[int, ...]) -> str:
    return next(name for name, ranks in GROUPS.items() if ranks == group)


def met(replay: RecordingReplay) -> Counter[tuple[tuple[int, int], ...]]:
    """The exchanges of a replay: of each the ranks and starts (us) of its kernels."""
    rows: dict[int, list[tuple[int, int]]] = {}
    for meeting, rank, op in zip(
        replay.meetings.meeting.tolist(), replay.meetings.rank.tolist(), replay.meetings.op.tolist(), strict=True
    ):
        rows.setdefault(meeting, []).append((replay.recording.ranks[rank].number, int(replay.ranks[rank].ops.start[op]) // US))
    return Counter(tuple(sorted(row)) for row in rows.values())


def true(ranks: list[list[Event]]) -> Counter[tuple[tuple[int, int], ...]]:
    """The collectives that at least two ranks have, as `met` gives them."""
    zero = min(span["start"] for of_rank in ranks for span in of_rank)
    rows: dict[str, list[tuple[int, int]]] = {}
    for rank, of_rank in enumerate(ranks):
        for span in of_rank:
            if "id" in span:
                rows.setdefault(span["id"], []).append((rank, span["start"] - zero))
    return Counter(tuple(sorted(row)) for row in rows.values() if len(row) > 1)


@pytest.mark.parametrize("seed", range(6))
def test_files_and_events_in_any_order_are_the_same_run(tmp_path: Path, seed: int) -> None:
    draw, ranks = random.Random(seed), events(3, seed=seed)
    for of_rank in ranks:  # as many kernels of no length, at the times of others
        of_rank += [{**span, "length": 0, "stream": 30, "name": "tiny"} for span in of_rank[::3] if "group" not in span]
    before = explain(as_kineto(tmp_path, ranks))
    recording = as_kineto(tmp_path, [draw.sample(of_rank, len(of_rank)) for of_rank in ranks])
    files = [Path(rank.file) for rank in recording.ranks]
    after = explain(kineto.read(draw.sample(files, len(files))))
    assert met(after) == met(before)
    assert engine.simulate(after.graph).makespan_fs == engine.simulate(before.graph).makespan_fs


@pytest.mark.parametrize("seed", range(8))
def test_ranks_that_begin_late_or_end_early_meet_in_what_they_both_have(tmp_path: Path, seed: int) -> None:
    draw, ranks = random.Random(seed), events(6, seed=seed)
    cut = [of_rank[draw.randrange(6) :][: draw.randrange(12, 24)] for of_rank in ranks]
    assert met(explain(as_kineto(tmp_path, cut))) == true(cut)
    one_away = [[] if rank == seed % 4 else of_rank for rank, of_rank in enumerate(cut)]
    assert met(explain(as_kineto(tmp_path / ".", one_away))) == true(one_away)


def test_a_group_that_has_more_ranks_than_it_says_is_no_exchange(tmp_path: Path) -> None:
    replay = explain(as_kineto(tmp_path, events(), ranked=False, size=2))
    assert not len(replay.meetings)
    assert replay.meetings.notes == (
        "4 ranks have collectives of a group 'tp' of 2 ranks, which cannot be matched: they do not wait",
        "4 ranks have collectives of a group 'dp' of 2 ranks, which cannot be matched: they do not wait",
    )


def test_a_rank_outside_its_own_group_waits_for_none(tmp_path: Path) -> None:
    ranks = events(2)
    for span in ranks[3]:
        if span.get("group") == (2, 3):
            span["group"] = (0, 1)
    replay = explain(as_kineto(tmp_path, ranks))
    assert all(row[1][0] != 3 for row in met(replay) if row[0][0] in (0, 2))
    assert any("rank 3 has 2 collectives of a group to which it does not belong" in note for note in replay.meetings.notes)


def test_a_recv_waits_for_the_send_of_its_rank(tmp_path: Path) -> None:
    """Two stages: the second receives what the first sends when its own product has ended, 2 ms later."""
    files = []
    for rank, (took, name, key) in enumerate(((3000, "send", "Dst Rank"), (1000, "recv", "Src Rank"))):
        common = {"ph": "X", "cat": "kernel", "pid": 0}
        about = {"Collective name": name, key: 1 - rank, "In msg nelems": 4096, "dtype": "Float", "Group size": 2}
        spans = (
            {**common, "name": "gemm", "tid": 7, "ts": EPOCH, "dur": took, "args": {"device": 0, "stream": 7}},
            {**common, "name": "ncclDevKernel_SendRecv", "tid": 20, "ts": EPOCH + took, "dur": 3100 - took,
             "args": {"device": 0, "stream": 20, **about}},
        )  # fmt: skip
        document = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": list(spans)}
        files.append(write_kineto(tmp_path / f"rank{rank}.json", document))
    replay = explain(kineto.read(files))
    assert replay.meetings.kinds == ("sendrecv",)
    assert replay.waited.max() == 2000 * US


def plain(stream: int, start: int, length: int) -> Event:
    """A kernel of which the file says no group."""
    return {"name": f"ncclKernel_AllReduce_RING_LL_Sum_{'float' if stream < 30 else 'half'}", "start": start, "length": length,
            "stream": stream}  # fmt: skip


def test_kernels_that_do_not_overlap_are_no_exchange(tmp_path: Path) -> None:
    """They end within 100 us of one another, but the first has ended before the second begins."""
    assert not len(explain(as_kineto(tmp_path, [[plain(20, 0, 10)], [plain(20, 50, 10)]])).meetings)
