"""`train:` the training of transformers, simulated."""

from __future__ import annotations

from typing import Any

import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.devices import Gpu
from hwsim.engine import simulate
from hwsim.families.training.results import TrainingResult
from hwsim.families.training.workload.schedule import in_order, passes, successor
from hwsim.machine import Machine
from hwsim.models import KernelTimes, Transformer, load_framework
from hwsim.models.architectures.slices import MicrobatchSlice
from hwsim.models.architectures.transformer_layers import grouped_experts
from hwsim.models.plan import Schedule
from hwsim.spec import SpecError
from hwsim.workload import GraphBuilder, OpRef
from tests.effort import effort

NODE = "dgx-h100"
EXPERTS: dict[str, Any] = {"kind": "transformer", "layers": 2, "hidden": 1024, "heads": 8, "vocab": 32000, "ffn": 4096,
                           "gated": True, "experts": 16, "top_k": 2}  # fmt: skip


def cluster(nodes: int, node: str = NODE, rate: str = "400 Gb/s") -> Machine:
    return load_machine(f"""hwsim: machine/1
class: ideal
name: {nodes} x {node}
parts:
  node: {{kind: machine, use: {node}, count: {nodes}}}
  leaf: {{kind: switch}}
links: [{{between: ["node*.nic*", leaf], kind: infiniband, rate: {rate}}}]
""")


def run(machine: str | Machine, **keys: Any) -> Any:
    fold = keys.pop("fold", "auto")
    return hwsim.simulate(machine, {"hwsim": "workload/1", "train": keys}, fold=fold)


def trained(machine: str | Machine, **keys: Any) -> TrainingResult:
    [found] = run(machine, **keys).trainings
    assert isinstance(found, TrainingResult)
    return found


def uniform(schedule: Schedule, stages: int, microbatches: int, chunks: int) -> float:
    """Seconds of a step whose every turn takes 1/chunks s forward and 2/chunks s backward, and nothing else any."""
    graph = GraphBuilder()
    known: dict[tuple[int, int, bool], OpRef] = {}
    queues = [graph.queue(f"stage{stage}") for stage in range(stages)]
    for stage in range(stages):
        for turn in passes(schedule, stage, stages, microbatches, chunks):
            took = (1.0 if turn.forward else 2.0) / chunks
            place = turn.chunk * stages + stage
            known[turn.microbatch, place, turn.forward] = graph.op("turn", time=took, queue=queues[stage])
    for (microbatch, place, forward), op in known.items():
        last = place == stages * chunks - 1
        before = (
            (microbatch, place - 1, True) if forward else (microbatch, place, True) if last else (microbatch, place + 1, False)
        )
        if before in known:
            graph.edge(known[before], op)
    return simulate(graph.build()).makespan


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 4)])
@pytest.mark.parametrize(("stages", "microbatches"), [(1, 4), (2, 4), (4, 8), (8, 16), (4, 4)])
def test_the_bubble_of_equal_stages_emerges_from_the_schedule(
    schedule: Schedule, chunks: int, stages: int, microbatches: int
) -> None:
    step = uniform(schedule, stages, microbatches, chunks)
    bubble = 1.0 - 3.0 * microbatches / step
    assert bubble == pytest.approx((stages - 1) / (chunks * microbatches + stages - 1), abs=1e-9)


@pytest.mark.parametrize(("stages", "chunks"), [(2, 3), (4, 2), (8, 4)])
@pytest.mark.parametrize("microbatches", [1, 3, 5, 7, 11, 13])
def test_any_number_of_microbatches_is_interleaved(stages: int, chunks: int, microbatches: int) -> None:
    """Fewer than stages wait for the first of them to come round."""
    waiting = (chunks - 1) * max(0, stages - microbatches) / chunks
    expected = 3.0 * (microbatches + (stages - 1) / chunks + waiting)
    assert uniform("interleaved", stages, microbatches, chunks) == pytest.approx(expected, abs=1e-9)


def test_layers_one_by_one_take_as_long_as_all_at_once() -> None:
    keys = {"model": "llama-3-8b", "global_batch": 8, "parallel": {"tp": 4, "pp": 2}}
    whole, parts = (trained(NODE, detail=detail, **keys) for detail in ("stage", "layer"))
    assert parts.step_s == pytest.approx(whole.step_s, rel=1e-3)
    assert (parts.computing, parts.exposed, parts.bubble) == pytest.approx(
        (whole.computing, whole.exposed, whole.bubble), abs=0.01
    )
    assert whole.computing + whole.exposed + whole.bubble == pytest.approx(1.0)
    assert whole.exposed > 0.05


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 3)])
def test_every_pass_is_written_behind_the_one_it_waits_for(schedule: Schedule, chunks: int) -> None:
    lines = [passes(schedule, stage, 4, 8, chunks) for stage in range(4)]
    written = list(in_order(lines, chunks))
    place = {stage_pass: index for index, stage_pass in enumerate(written)}
    assert len(place) == sum(map(len, lines)) == 2 * 4 * 8 * chunks
    assert [[done for stage, done in written if stage == number] for number in range(4)] == [list(line) for line in lines]
    awaited = [(following, (stage, done)) for stage, done in written if (following := successor(stage, done, 4, chunks))]
    assert len(awaited) == len(written) - 8  # the last backward pass of each micro-batch is waited for by none
    assert all(place[then] > place[before] for then, before in awaited)


def test_the_fullest_gpu_of_experts_is_waited_for_as_in_a_program() -> None:
    """Differences of a forward pass beside an all-to-all with a matrix there and back, and kernels of the experts."""
    tokens, ranks, layers = 2048, 8, 2
    model = Transformer(**{key: value for key, value in EXPERTS.items() if key != "kind"})
    gpu = load_machine(NODE).device("gpu0").model
    assert isinstance(gpu, Gpu)

    def passes(imbalance: float) -> tuple[float, float]:
        found = run(NODE, model=EXPERTS, parallel={"ep": ranks}, global_batch=8, steps=1, sequence=tokens, imbalance=imbalance)
        return sum(op.duration_s for op in found.ops if (op.device, op.name) == ("gpu0", "forward")), found.memory[0].peak

    def written(imbalance: float) -> float:
        uneven = [imbalance, *[(ranks - imbalance) / (ranks - 1)] * (ranks - 1)]
        ops = [
            {"alltoall": {"among": "gpu*", "bytes": f"{tokens * 1024 * 2 * 2} B", "matrix": matrix}}
            for matrix in ([uneven] * ranks, [[load] * ranks for load in uneven])
        ]
        times = KernelTimes(gpu, load_framework("megatron-core"))
        kernels = grouped_experts(model, MicrobatchSlice(1, tokens, tokens, expert=ranks, imbalance=imbalance))
        exchanges = [hwsim.simulate(NODE, {"hwsim": "workload/1", "program": [op]}).makespan_s for op in ops]
        return sum([*map(times.seconds, kernels), *exchanges])

    (even, kept), said = passes(1.0), written(1.0)
    for imbalance in (1.5, 3.0):
        ahead, peak = passes(imbalance)
        assert peak > kept
        assert ahead - even == pytest.approx(layers * (written(imbalance) - said), rel=1e-6)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"parallel": {"tp": 5}}, "tp 5 x pp 1 = 5 does not divide 8 GPUs"),
        ({"imbalance": 1.5}, "no effect without expert parallelism"),
        ({"model": EXPERTS, "parallel": {"ep": 8}, "imbalance": 9}, "one of 8 GPUs can receive at most 8 x the average tokens"),
        ({"parallel": "best"}, "`parallel`: expected a mapping or auto, got 'best'"),
    ],
)
def test_a_plan_that_cannot_be_gets_one_line(said: dict[str, Any], line: str) -> None:
    with pytest.raises(SpecError) as caught:
        run(NODE, **{"model": "llama-3-8b", "global_batch": 64, **said})
    assert [line in mistake.message for mistake in caught.value.mistakes].count(True) == 1


def test_a_plan_is_found_that_fits() -> None:
    found = trained(NODE, model="llama-3-8b", global_batch=32, parallel="auto", sharding="zero-1")
    assert found.plan.startswith("tp ")
    assert found.mfu > 0.3


@pytest.mark.parametrize("detail", ["stage", "layer"])
def test_a_slow_gpu_slows_its_whole_team_by_all_of_its_computing_and_not_the_exchanges(detail: str) -> None:
    keys = {"model": "opt-1.3b", "global_batch": 8, "parallel": {"tp": 4}, "detail": detail}
    events = [[{"at": "0 s", "part": "gpu3", "speed": f"{speed} %"}] if speed < 100 else [] for speed in (100, 80, 50)]
    fine, less, half = (
        hwsim.simulate(NODE, {"hwsim": "workload/1", "train": keys, "events": event}).trainings[0] for event in events
    )
    computing = half.step_s - fine.step_s
    assert less.step_s - fine.step_s == pytest.approx(computing / 4, rel=5e-3)
    assert computing == pytest.approx(fine.step_s * fine.stages[0].computing, rel=5e-3)
    stage = {"name": "step", "train": {key: value for key, value in keys.items() if key != "global_batch"}}
    pipeline = {"hwsim": "workload/1", "pipeline": {"batches": 1, "batch": 8, "stages": [stage]}, "events": events[1]}
    assert hwsim.simulate(NODE, pipeline).makespan_s == pytest.approx(less.step_s, rel=1e-6)


def test_two_jobs_side_by_side_have_their_own_steps() -> None:
    jobs = {
        "big": {"train": {"model": "opt-1.3b", "device": "gpu0..3", "global_batch": 16}},
        "small": {"start": "1 s", "train": {"model": "opt-125m", "device": "gpu4..7", "global_batch": 16}},
    }
    found = hwsim.simulate(NODE, {"hwsim": "workload/1", "jobs": jobs, "expect": {"small.step": "at most 1 s"}})
    assert [training.name for training in found.trainings] == ["big", "small"]
    assert found.trainings[1].step_s < found.trainings[0].step_s
    assert found.met


def test_days_follow_from_the_last_step() -> None:
    found = trained(NODE, model="opt-125m", global_batch=64, tokens=1e9)
    assert found.days == pytest.approx(1e9 / (64 * 2048) * found.step_s / 86_400)
    passes = trained(NODE, model="opt-125m", global_batch=64, epochs=3, samples=100_000, sequence=1024)
    assert passes.days == pytest.approx(3 * 100_000 / 64 * passes.step_s / 86_400)


def test_a_step_of_one_node_is_lowered_and_played_in_a_second() -> None:
    assert effort(lambda: trained(NODE, model="llama-3-8b", global_batch=64, parallel={"tp": 2, "pp": 2})) < 40


def test_steps_and_what_comes_after_them_are_the_time_of_the_run() -> None:
    """Weights of the last step are gathered for a step that does not come."""
    for sharding in ("none", "zero-1"):
        result = run(cluster(2), model="gpt2", global_batch=16, sharding=sharding)
        (found,) = result.trainings
        assert found.first_s + found.step_s == pytest.approx(found.ended_s)
        after = result.makespan_s - found.ended_s
        assert (" after them" in str(result)) == (after > 1e-3 * found.step_s) == (sharding == "zero-1")


def test_one_step_that_leaves_weights_to_be_gathered_is_called_a_first_step() -> None:
    keys = {"model": "llama-3-8b", "global_batch": 8, "recompute": "full", "sequence": 512, "tokens": 1e12}
    alone = run(NODE, **keys, sharding="zero-1", steps=1)
    two = trained(NODE, **keys, sharding="zero-1", steps=2)
    [first] = alone.trainings
    assert first.step_s == pytest.approx(two.first_s)
    assert first.after_s > 0.9 * (two.step_s - two.first_s) > 0.05 * two.step_s
    assert "later steps also wait for the 32.7 ms of communication after it" in " ".join(str(alone).split())
    assert "a first step" not in str(run(NODE, model="gpt2", global_batch=8, sharding="none", steps=1))
