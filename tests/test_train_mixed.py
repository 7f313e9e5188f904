"""`train:` on GPUs of several kinds: each computes its own kernels, the slowest sets the pace, and order changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.families.training.results import TrainingResult
from hwsim.machine import Machine
from hwsim.models import ParallelPlan, Transformer, cluster_of, estimate, load_framework
from hwsim.spec import SpecError
from tests import command

SMALL: dict[str, Any] = {"layers": 8, "hidden": 2048, "heads": 16, "vocab": 32000, "sequence": 1024, "ffn": 8192}
FAST, SLOW, OLD = "h100-sxm", "a100-sxm-80gb", "v100-sxm2-32gb"
NODE = """{kind: machine, count: 2, parts: {gpu: {kind: gpu, use: %s, count: 2}, nic: {kind: nic, bandwidth: 200 Gb/s, count: 2},
    cpu: {kind: cpu, use: xeon-8480}, nvs: {kind: switch}, s: {kind: switch}}, links: [
    {between: [gpu*, nvs], kind: nvlink, gen: %d, links: 12},
    {between: [[cpu, gpu*, nic*], s], kind: pcie, gen: 4, lanes: 16}]}"""
BOTH = f"""hwsim: machine/1
class: ideal
parts: {{h: {NODE % (FAST, 4)}, a: {NODE % (SLOW, 3)}, leaf: {{kind: switch}}}}
links:
  - {{between: ["h*.nic*", leaf], kind: infiniband, rate: 200 Gb/s}}
  - {{between: ["a*.nic*", leaf], kind: infiniband, rate: 200 Gb/s}}
"""


def node(kinds: Sequence[str]) -> Machine:
    """GPUs of these kinds in order, g0, g1, ..., on one switch that carries the same for each."""
    parts = ", ".join(f"g{number}: {{kind: gpu, use: {kind}}}" for number, kind in enumerate(kinds))
    names = ", ".join(f"g{index}" for index in range(len(kinds)))
    link = f"{{between: [[{names}], sw], kind: nvlink, gen: 2, links: 6}}"
    return load_machine(f"hwsim: machine/1\nclass: ideal\nparts: {{{parts}, sw: {{kind: switch}}}}\nlinks: [{link}]\n")


def run(machine: Machine, fold: Any = "auto", **keys: Any) -> hwsim.Run:
    train = {"model": {"hwsim": "model/1", **SMALL}, "global_batch": 8, "device": list(machine.devices_of("gpu")), **keys}
    return hwsim.simulate(machine, {"hwsim": "workload/1", "train": train}, fold=fold)


def trained(machine: Machine, **keys: Any) -> TrainingResult:
    return run(machine, **keys).trainings[0]


def told(found: TrainingResult) -> list[float]:
    """All numbers that must not depend on the order of the devices."""
    kinds = [value for kind in found.kinds for value in (len(kind.devices), kind.computing_s)]
    return [found.step_s, found.first_s, found.mfu, found.computing, found.exposed, found.bubble, *kinds]


@pytest.fixture(scope="module")
def both() -> Machine:
    return load_machine(BOTH)


@pytest.mark.parametrize(("sharding", "detail"), [("zero-0", "stage"), ("zero-1", "layer"), ("zero-3", "stage")])
def test_the_order_of_the_list_changes_nothing(both: Machine, sharding: str, detail: str) -> None:
    keys: dict[str, Any] = {"parallel": {"tp": 2, "dp": "rest"}, "sharding": sharding, "detail": detail}
    orders = (["h*.gpu*", "a*.gpu*"], ["a*.gpu*", "h*.gpu*"], ["h0.gpu*", "a*.gpu*", "h1.gpu*"])
    found = [told(trained(both, device=order, **keys)) for order in orders]
    assert found[1] == pytest.approx(found[0], rel=1e-6)
    assert found[2] == pytest.approx(found[0], rel=1e-6)


def test_each_kind_computes_as_long_as_it_does_alone(both: Machine) -> None:
    """By the estimate of each kind alone, without what it exchanges."""
    mixed = trained(both, device=["h*.gpu*", "a*.gpu*"], parallel={"tp": 2, "dp": "rest"})
    assert [kind.devices[0] for kind in mixed.kinds] == ["a0.gpu0", "h0.gpu0"]
    plan = ParallelPlan(tp=2, global_batch=4, sequence_parallel=True, dtype="bf16", sharding="none")
    for kind in mixed.kinds:
        cluster = cluster_of(both, both.select(f"{kind.devices[0][0]}*.gpu*"))
        shares = estimate(Transformer(**SMALL), plan, cluster, load_framework("megatron-core")).shares
        kernels = sum(seconds for what, seconds in shares.items() if what not in ("tp", "dp"))
        assert kind.computing_s == pytest.approx(kernels, rel=1e-6)
        assert mixed.step_s > kernels
    assert not trained(both, device="a*.gpu*", parallel={"tp": 2}, global_batch=4).kinds


@pytest.mark.parametrize("detail", ["layer", "stage"])
def test_a_team_waits_for_its_slowest(detail: str) -> None:
    keys: dict[str, Any] = {"parallel": {"tp": 4}, "detail": detail}
    slow, mixed, turned = (
        trained(node(kinds), **keys) for kinds in ([SLOW] * 4, [FAST, FAST, SLOW, SLOW], [SLOW, FAST, SLOW, FAST])
    )
    assert mixed.step_s == pytest.approx(slow.step_s, rel=1e-3)  # the A100 is the slower one at every kernel
    assert told(turned) == pytest.approx(told(mixed), rel=1e-6)
    fast = trained(node([FAST] * 4), **keys)
    assert mixed.kinds[1].computing_s == pytest.approx(fast.computing * fast.step_s, rel=1e-3)


@pytest.mark.parametrize(
    "parallel", [{"tp": 4}, {"tp": 2, "dp": 2}, {"dp": 4}, {"pp": 4}, {"pp": 2, "dp": 2}, {"tp": 2, "pp": 2}], ids=str
)
def test_a_faster_gpu_in_the_place_of_a_slower_one_never_slows(parallel: dict[str, int]) -> None:
    kinds = [OLD] * 4
    model = {"hwsim": "model/1", **SMALL, "layers": 4}
    steps = []
    for place, better in ((None, ""), (2, SLOW), (0, FAST), (3, SLOW), (1, SLOW), (3, FAST), (1, FAST), (2, FAST)):
        if place is not None:
            kinds[place] = better
        steps.append(trained(node(kinds), model=model, parallel=parallel, dtype="fp16", sharding="zero-1").step_s)
    # what a faster copy exchanges falls beside what a slower one does, on links that both use: 20 us of 50 ms
    assert all(after <= before * (1 + 5e-4) for before, after in pairwise(steps)), steps
    assert steps[-1] < 0.7 * steps[0]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
def test_memory_is_held_against_each_gpu_s_own(order: list[int]) -> None:
    kinds = [FAST, FAST, SLOW, "a100-sxm-40gb"]
    keys: dict[str, Any] = {"model": "gpt2-xl", "parallel": {"dp": 4}, "microbatch": 8, "global_batch": 32}
    machine = node([kinds[index] for index in order])
    with pytest.raises(hwsim.OutOfMemory, match=f"g{order.index(3)} needs"):
        run(machine, **keys)
    assert run(node([FAST, FAST, SLOW, SLOW]), **keys).fits


def test_the_format_is_one_that_all_have() -> None:
    assert "fp16" in trained(node([FAST, OLD]), parallel={"dp": 2}).plan
    assert "bf16" in trained(node([FAST, SLOW]), parallel={"dp": 2}).plan


def test_what_computes_nothing_is_refused_wherever_it_stands(both: Machine) -> None:
    with pytest.raises(SpecError, match=r"a0\.cpu is not a GPU"):
        trained(both, device=["h*.gpu*", "a0.cpu"])


def test_an_estimate_of_mixed_gpus_is_refused_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(BOTH)
    said = command.hwsim("estimate", file, "gpt2-xl", "--global-batch", "32", code=2)
    assert "estimates require identical GPUs, but h0.gpu0 differs from a0.gpu0" in said.output
    assert "hwsim simulate" in said.output


def test_a_plan_for_mixed_gpus_is_to_be_said(both: Machine) -> None:
    with pytest.raises(SpecError, match="cannot search a parallel plan: estimates require identical GPUs"):
        trained(both, device=["h*.gpu*", "a*.gpu*"], parallel="auto")


def test_the_summary_says_who_waits(both: Machine) -> None:
    text = str(run(both, device=["h*.gpu*", "a*.gpu*"], parallel={"tp": 2, "dp": "rest"}))
    assert "slowest GPUs   a*.gpu* (4): 28.3 ms" in text
    assert "idle meanwhile: h*.gpu* (4) 15.6 ms" in text
