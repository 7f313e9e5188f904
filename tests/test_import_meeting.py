"""Which kernels of several ranks are one collective: the same whatever the format, the order of files and events, or the clock.

Runs are made by hand: four ranks, tensor parallel pairs and data parallel pairs, where each collective is known by its step.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hwsim import engine
from hwsim.importers import chakra
from hwsim.importers.chakra_nodes import ChakraNodeKind, ChakraTrace, attribute, node, pack
from hwsim.importers.kineto import trace as kineto
from hwsim.importers.predicting import predict
from hwsim.importers.recording import Recording
from hwsim.importers.replay import RecordingReplay, explain
from hwsim.prepare import load_machine
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


def as_chakra(folder: Path, ranks: list[list[Event]], first: int = EPOCH, *, timed: bool = True) -> Recording:
    files = []
    for rank, of_rank in enumerate(ranks):
        nodes: list[Any] = []
        for number, span in enumerate(of_rank, 1):
            about: dict[str, Any] = {"is_cpu_op": False, "stream": span["stream"]}
            kind = ChakraNodeKind.COMP
            if "group" in span:
                about |= {"comm_type": 0, "comm_size": 4 * 4096, "pg_name": named(span["group"])}
                kind = ChakraNodeKind.COLLECTIVE
            attributes = tuple(attribute(name, KINDS[type(value)], value) for name, value in about.items())
            data = () if timed or number == 1 else (number - 1,)
            start, length = (first + span["start"], span["length"]) if timed or "group" not in span else (0, 0)
            nodes.append(node(number, span["name"], kind, (), data, start if timed else 0, length, attributes=attributes))
        head = (attribute("hwsim.world", "int64", 4),)
        files.append(folder / f"run.{rank}.et")
        files[-1].write_bytes(pack(ChakraTrace("0.0.4", head, tuple(nodes))))
    (folder / "comm_group.json").write_text(json.dumps(GROUPS))
    return chakra.read([*files, folder / "comm_group.json"])


KINDS = {bool: "bool", int: "int64", str: "string"}


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


def test_the_same_events_are_the_same_graph_in_either_format(tmp_path: Path) -> None:
    ranks = events()
    found = [explain(read(tmp_path, ranks)) for read in (as_kineto, as_chakra)]
    one, other = (replay.graph.blocks[0] for replay in found)
    assert met(found[0]) == met(found[1]) == true(ranks)
    assert one.time.tolist() == other.time.tolist()
    assert sorted(map(tuple, one.edges.tolist())) == sorted(map(tuple, other.edges.tolist()))
    assert one.queue.tolist() == other.queue.tolist()
    assert found[0].graph.labels == found[1].graph.labels
    assert {replay.recording.zero for replay in found} == {EPOCH / 1e6}


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


def test_without_starts_the_nth_collectives_of_a_group_meet(tmp_path: Path) -> None:
    """The run ends when the recorded one does, less the time of the collectives that the files do not have."""
    ranks = events()
    replay = explain(as_chakra(tmp_path, ranks, timed=False))
    assert len(replay.meetings) == len(true(ranks))
    ends = max(span["start"] + span["length"] for of_rank in ranks for span in of_rank)
    assert engine.simulate(replay.graph).makespan_fs <= ends * US
    assert engine.simulate(replay.graph).makespan_fs >= (ends - 4 * 800) * US
    shorter = explain(as_chakra(tmp_path, [ranks[0][:-4], *ranks[1:]], timed=False))
    assert len(shorter.meetings) == len(true(ranks)) - 2
    assert any("the others do not wait" in note for note in shorter.meetings.notes)


def single(number: int, kind: ChakraNodeKind, data: tuple[int, ...] = (), time: int = 0, **about: Any) -> Any:
    attributes = {"is_cpu_op": False, **about}
    return node(number, kind.name, kind, (), data, 0, time,
                attributes=tuple(attribute(name, KINDS[type(fact)], fact) for name, fact in attributes.items()))  # fmt: skip


def written(folder: Path, *ranks: tuple[Any, ...]) -> list[Path]:
    files = [folder / f"x.{rank}.et" for rank in range(len(ranks))]
    for file, nodes in zip(files, ranks, strict=True):
        file.write_bytes(pack(ChakraTrace("0.0.4", (), nodes)))
    return files


def test_a_recv_waits_for_the_send_with_its_tag(tmp_path: Path) -> None:
    """Two micro-batches of two stages, received in the order of the tags that the second stage wants: 1, then 0."""
    sends = [single(10 + tag, ChakraNodeKind.SEND, (tag + 1,), comm_dst=1, comm_size=1 << 20, comm_tag=tag) for tag in (0, 1)]
    first = (single(1, ChakraNodeKind.COMP, (), 3000), single(2, ChakraNodeKind.COMP, (1,), 3000), *sends)
    second = [
        single(1, ChakraNodeKind.RECV, (), comm_src=0, comm_size=1 << 20, comm_tag=1),
        single(2, ChakraNodeKind.COMP, (1,), 5000),
    ]
    second += [
        single(3, ChakraNodeKind.RECV, (1,), comm_src=0, comm_size=1 << 20, comm_tag=0),
        single(4, ChakraNodeKind.COMP, (3,), 5000),
    ]
    replay = explain(chakra.read(written(tmp_path, first, tuple(second))))
    assert len(replay.meetings) == 2
    assert engine.simulate(replay.graph).makespan_fs == (6000 + 2 * 5000) * US
    found = predict(replay, load_machine("dgx-h100"))
    assert {row.name for row in found.rows if row.how == "predicted"} == {"send among 2", "recv among 2"}


def test_two_ranks_that_both_send_first_do_not_wait_for_ever(tmp_path: Path) -> None:
    def both(rank: int, time: int) -> tuple[Any, ...]:
        other = {"comm_size": 1 << 20, "comm_tag": 0}
        first = single(1, ChakraNodeKind.COMP, (), time), single(2, ChakraNodeKind.SEND, (1,), comm_dst=1 - rank, **other)
        return *first, single(3, ChakraNodeKind.RECV, (2,), comm_src=1 - rank, **other), single(4, ChakraNodeKind.COMP, (3,), 100)

    replay = explain(chakra.read(written(tmp_path, both(0, 1000), both(1, 4000))))
    assert (len(replay.meetings), replay.meetings.notes) == (2, ())
    assert engine.simulate(replay.graph).makespan_fs == 4100 * US


def test_collectives_that_would_never_end_are_refused_a_meeting(tmp_path: Path) -> None:
    def both(*names: str) -> tuple[Any, ...]:
        return tuple(
            single(index, ChakraNodeKind.COLLECTIVE, (index - 1,) * (index > 1), comm_type=0, comm_size=64, pg_name=name)
            for index, name in enumerate(names, 1)
        )

    replay = explain(chakra.read(written(tmp_path, both("a", "b"), both("b", "a"))))
    assert replay.meetings.notes == ("collectives form a dependency cycle: they do not wait",)
    assert not len(replay.meetings)


def test_nodes_without_a_start_among_others_that_have_one_begin_after_what_they_wait_for(tmp_path: Path) -> None:
    nodes = (
        node(1, "a", ChakraNodeKind.COMP, start=EPOCH, duration=30), node(2, "b", ChakraNodeKind.COMP, data=(1,), duration=5,
        attributes=THREAD),
        node(3, "c", ChakraNodeKind.COMP, data=(2,), duration=7, attributes=THREAD), node(4, "d", ChakraNodeKind.COMP,
        start=EPOCH + 60, duration=1),
    )  # fmt: skip
    recording = chakra.read(written(tmp_path, nodes))
    slices = recording.ranks[0].slices
    assert (slices.start // US).tolist() == [0, 30, 35, 60]
    assert [(left.name, left.count) for left in recording.left] == [("no start", 2)]


THREAD = (attribute("tid", "int64", 9),)


def plain(stream: int, start: int, length: int) -> Event:
    """A kernel of which the file says no group."""
    return {"name": f"ncclKernel_AllReduce_RING_LL_Sum_{'float' if stream < 30 else 'half'}", "start": start, "length": length,
            "stream": stream}  # fmt: skip


def test_kernels_that_do_not_overlap_are_no_exchange(tmp_path: Path) -> None:
    """They end within 100 us of one another, but the first has ended before the second begins."""
    assert not len(explain(as_kineto(tmp_path, [[plain(20, 0, 10)], [plain(20, 50, 10)]])).meetings)
