"""Of few GPUs that are alike one is simulated, and nothing that is shown tells: all of them are there, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hwsim
from hwsim import api
from hwsim.prepare import LoweredWorkload, with_all_ranks
from hwsim.results.invariants import BrokenInvariant
from hwsim.views.report import run_page
from hwsim.views.trace import write
from tests.test_fold_energy import powered
from tests.test_fold_library import simulated
from tests.test_fold_unlike import SLOW, A, H, Spec, cluster, network

BATCH = 240  # of the examples, divided by 2, 3, 4, 6 and 8 GPUs


def explained(run: hwsim.Run) -> str:
    answer = run.explain(what_if=False)
    return f"{answer}{json.dumps(answer.to_json())}"


VIEWS: dict[str, Callable[[hwsim.Run], Any]] = {
    "text": str,
    "json": lambda run: json.dumps(run.to_json()),
    "ops": lambda run: json.dumps(run.to_json(ops=True)),
    "trace": lambda run: b"".join(write.render(run, ".json")),
    "page": lambda run: b"".join(run_page.render(run)),
    "explain": explained,
}
NUMBERS = ("text", "json")  # that ask for no op


def told_by(machine: Any, workload: Any) -> tuple[int, list[str]]:
    """(number of GPUs that were simulated, the views that tell how many).

    That every op is at its time is looked at whenever a view asks for all of them (`hwsim.api`).
    """
    few, many = simulated(machine, workload), simulated(machine, workload, "never")
    told = [name for name in NUMBERS if VIEWS[name](few) != VIEWS[name](many)]
    told += ["numbers made the ops of all"] if few.unfolded is not None and "timeline" in vars(few) else []
    told += [name for name in VIEWS if name not in NUMBERS and VIEWS[name](few) != VIEWS[name](many)]
    return len({queue.device for queue in few.simulated.flat.graph.queues if queue.name.endswith(".compute")}), told


@st.composite
def networks(draw: st.DrawFn) -> tuple[Spec, Spec]:
    """A few GPUs, some of which may be odd, that train a small network."""
    nodes, gpus = draw(st.sampled_from([(1, 2), (1, 3), (1, 4), (2, 2), (2, 3), (2, 4), (4, 2)]))
    kinds = tuple(draw(st.sampled_from([A, A, H])) for _ in range(nodes)) if draw(st.booleans()) else (A,) * nodes
    machine = powered(cluster(kinds, gpus, cards=draw(st.sampled_from([1, gpus])), leaves=draw(st.sampled_from([1, 2]))), "")
    names = [f"n{node}.gpu{gpu}" for node in range(nodes) for gpu in range(gpus)]
    events: list[Spec] = []
    for part in draw(st.lists(st.sampled_from([*names, "n0.cpu"]), max_size=2, unique=True)):
        how = draw(st.sampled_from([{"down": "3 ms"}, {"speed": "70 %"}, {"speed": "40 %", "for": "2 ms"}]))
        events.append({"at": f"{draw(st.integers(0, 9))} ms", "part": part, **how})
    if draw(st.integers(0, 3)) == 0:
        events.append({"at": "0 s", "link": f"f{draw(st.integers(0, nodes - 1))}", "speed": "50 %"})
    keys = draw(st.sampled_from([{}, {"optimizer": "sgd"}, {"framework": "mxnet-ngc"}, {"framework": "pytorch-ngc"}]))
    some = draw(st.permutations(names).map(lambda all_of_them: sorted(all_of_them[:2]) + all_of_them[2:4]))
    keys |= draw(
        st.sampled_from(
            [
                {},
                {"device": some},
                {"gpus": 2},
                {"checkpoint": {"every": 1, "bandwidth": "1 GB/s", "sharded": draw(st.booleans())}},
                {"synchronise": {"by": "all-reduce", "bucket": "100 kB"}},
            ]
        )
    )
    return machine, network(events, **{"steps": draw(st.integers(1, 2)), "global_batch": BATCH, **keys})


@given(networks())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_no_view_tells_that_gpus_stood_for_others(case: tuple[Spec, Spec]) -> None:
    assert told_by(*case)[1] == []


ALIKE = cluster((A, A), 2)


@pytest.mark.parametrize(
    ("machine", "workload", "number"),
    [
        (ALIKE, network([]), 1),
        (cluster((A, A), 4), network([{**SLOW, "part": "n1.gpu1"}]), 3),  # it, those at its host, and the others
        (cluster((A,), 4), network([{**SLOW, "part": "n0.gpu2"}, {"at": "2 ms", "part": "n0.gpu0", "down": "1 ms"}]), 4),
        (ALIKE, network([{**SLOW, "part": "n1.gpu1"}]), 4),  # three classes of four
        (cluster((A, H), 2), network([]), 2),
        (ALIKE, network([], device=["n1.gpu1", "n0.gpu1", "n0.gpu0"]), 3),  # a host with two, and one with one
        (ALIKE, network([], threads="one"), 4),
        (ALIKE, network([], synchronise="parameter-server"), 4),
        (ALIKE, network([{"at": "0 s", "part": "n0.gpu0", "jitter": "5 %", "for": "10 ms", "every": "1 ms"}]), 4),
        (ALIKE, network([], parallel={"tp": 2}), 4),
    ],
)
def test_gpus_that_differ_stand_for_none_of_the_others(machine: Spec, workload: Spec, number: int) -> None:
    assert told_by(machine, workload) == (number, [])


def test_a_library_workload_is_shown_with_all_of_its_gpus() -> None:
    few, many = hwsim.simulate("dgx-a100", "resnet50-dp"), hwsim.simulate("dgx-a100", "resnet50-dp", fold="never")
    assert 7 * len(few.simulated) < len(many.simulated)
    assert [VIEWS[name](few) for name in NUMBERS] == [VIEWS[name](many) for name in NUMBERS]
    assert (few.timeline.start.tolist(), few.timeline.end.tolist()) == (many.timeline.start.tolist(), many.timeline.end.tolist())


def test_points_and_what_ifs_simulate_one_of_the_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LoweredWorkload] = []

    def with_all(lowered: LoweredWorkload) -> LoweredWorkload:
        made.append(lowered)
        return with_all_ranks(lowered)

    monkeypatch.setattr(api, "with_all_ranks", with_all)
    swept = hwsim.sweep(ALIKE, network([]), {"workload.train.global_batch": [64, 128]})
    assert len(swept.rows) == 2
    assert made == []
    assert "what_if" in hwsim.explain(ALIKE, network([])).to_json()
    assert len(made) == 1  # the run that is explained


def test_ops_that_are_not_those_of_the_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = hwsim.simulate(ALIKE, network([]))
    assert run.unfolded is not None
    slower = simulated(ALIKE, network([{**SLOW, "part": "n1.gpu1"}]), "never")
    monkeypatch.setattr(api, "play", lambda *_: slower)
    with pytest.raises(BrokenInvariant):
        run.trace("unused.json")
