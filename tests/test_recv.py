"""A program goes on once what another sends it has come: each `recv` is of the earliest send that was not received."""

from __future__ import annotations

import pytest

from hwsim import api
from hwsim.spec import SpecError, read_text

MACHINE = """
hwsim: machine/1
class: ideal
parts:
  gpu: {kind: gpu, count: 4, memory: {size: 16 GB, bandwidth: 1 TB/s}, flop: {fp32: 10 TFLOP/s}}
  hub: {kind: switch}
links:
  - {name: wire, between: [gpu*, hub], kind: direct, bandwidth: 10 GB/s}
"""
RING = """
hwsim: workload/1
program:
  each: gpu*
  do:
    - busy: {name: work, time: 1 ms}
    - repeat:
        times: TIMES
        do:
          - send: {name: pass, to: "gpu[($rank + 1) mod $ranks]", bytes: 10 MB, after: [work]}
          - recv: {from: "gpu[($rank - 1) mod $ranks]"}
          - busy: {name: work, time: 2 ms}
"""


def run(workload: str) -> api.Run:
    return api.simulate(read_text(MACHINE), read_text(workload))


def seconds(workload: str) -> float:
    return run(workload).makespan_s


@pytest.mark.parametrize("times", [1, 3, 500])
def test_a_ring_passes_on_what_it_has_received(times: int) -> None:
    """Each turn sends 10 MB at 10 GB/s, and works on what came."""
    assert seconds(RING.replace("TIMES", str(times))) == pytest.approx(1e-3 + times * (1e-3 + 2e-3))


def test_a_late_sender_is_waited_for_by_its_neighbour_alone() -> None:
    """Rank 2 is late by 5 ms: rank 3 ends late with it, and rank 0 does not wait."""
    text = RING.replace("TIMES", "1").replace(
        "name: work, time: 1 ms", "name: work, time: 'max(1 ms, ($rank // 2 - $rank // 3) * 5 ms)'"
    )
    ends = {
        row["device"]: row["end_s"] for row in run(text).to_json(ops=True)["ops"] if row["name"] == "work" and row["start_s"] > 0
    }
    assert ends == pytest.approx({"gpu0": 4e-3, "gpu1": 4e-3, "gpu2": 7e-3, "gpu3": 8e-3})


def test_two_sends_are_received_one_after_the_other() -> None:
    both = """
hwsim: workload/1
program:
  each: gpu*
  do:
    - send: {name: small, to: "gpu[($rank + 1) mod $ranks]", bytes: 10 MB}
    - send: {name: large, to: "gpu[($rank + 1) mod $ranks]", bytes: 90 MB}
    - recv: "gpu[($rank + 3) mod $ranks]"
    - busy: {time: 1 ms}
"""
    again = '    - recv: "gpu[($rank + 3) mod $ranks]"\n    - busy: {time: 20 ms}\n'
    assert seconds(both) == pytest.approx(10e-3)  # the work is over long before
    assert seconds(both + again) == pytest.approx(30e-3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[($rank - 1) mod $ranks]", "[($rank + 2) mod $ranks]", "gpu0 receives from gpu2, but no unreceived `send` precedes"),
        ('"gpu[($rank - 1) mod $ranks]"', "hub", "no program of this `each` runs on hub"),
        ('"gpu[($rank - 1) mod $ranks]"', '"gpu[$rank + 1]"', "there is no part 'gpu4'"),
        ('"gpu[($rank - 1) mod $ranks]"', '"gpu[$rank / 2]"', "is 0.5: expected 0, 1, 2"),
    ],
)  # fmt: skip
def test_what_would_wait_for_ever_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError) as told:
        seconds(RING.replace("TIMES", "2").replace(old, new))
    assert message in str(told.value)


def test_without_each_nobody_receives() -> None:
    with pytest.raises(SpecError, match="`recv` is valid only in a program with `each`"):
        seconds("hwsim: workload/1\nprogram:\n  - recv: gpu1\n")
