"""Recordings on other numbers of ranks: data parallel copies, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwsim.importers.answers import answer
from hwsim.importers.predicting import predict
from hwsim.importers.recording import Recording
from hwsim.importers.replay import explain
from hwsim.importers.scaling import CannotScale, scaled
from hwsim.prepare import load_machine
from tests.test_import_predict import op, recording

MACHINE = load_machine("dgx-a100")
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def trained(tmp_path: Path, products: list[float], group: list[int] | None = None, kind: str = "allreduce") -> Recording:
    """Ranks that each compute for that many us, and then exchange 25 million numbers."""
    ranks = group or list(range(len(products)))
    said = {"Collective name": kind, "In msg nelems": 25_000_000, "Out msg nelems": 25_000_000, "Group size": len(ranks),
            "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": str(ranks)}  # fmt: skip
    events = []
    for took in products:
        compute = op("mine::work", 100, [("work", 110, took)])
        exchange = op("record_param_comms", 200, [(NCCL, 120 + took, 6000 - took)], **said)
        exchange[-1]["args"] |= said
        events.append([*compute, *exchange])
    return recording(tmp_path, *events)


def test_new_ranks_are_like_recorded_ones_in_turn_and_wait_for_the_slowest(tmp_path: Path) -> None:
    run = explain(trained(tmp_path, [1000, 3000]))
    more = scaled(run, 8)
    assert [rank.number for rank in more.replay.recording.ranks] == list(range(8))
    assert more.assumed == ("rank r repeats the work of recorded rank r modulo 2, on its own GPU",)
    found = predict(more.replay, MACHINE)
    body, graph = found.graph.blocks[0], found.graph
    work = [time for time, label in zip(body.time, body.label, strict=True) if graph.labels[label].name == "work"]
    assert work == [1e12, 3e12] * 4
    (row,) = [row for row in found.rows if row.kind == "collectives"]
    assert (row.name, row.count, row.how) == ("allreduce among 8", 8, "predicted")
    exchange = row.time / 8
    assert 2 * 7 / 8 * 100e6 / 300e9 < exchange < 1e-3  # a ring of eight over NVLink 3
    assert answer(found).makespan.value == pytest.approx(3110e-6 + exchange, rel=0.05)


def test_what_a_recording_does_not_tell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotScale, match="expected at least the 2 recorded ranks, got 1"):
        scaled(explain(trained(tmp_path, [1000, 3000])), 1)
    with pytest.raises(CannotScale, match=r"a group \(0, 1\) of 2 of 4 ranks"):
        scaled(explain(trained(tmp_path, [1000, 1000, 1000, 1000], [0, 1])), 8)
    with pytest.raises(CannotScale, match="a send between two ranks"):
        scaled(explain(trained(tmp_path, [1000, 1000], kind="send")), 8)
