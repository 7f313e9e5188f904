"""The search for deployments: no deployment that a question names beats its answer, for random models, machines and loads."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from hwsim.planning import plan_deployment, read_question
from hwsim.planning.deployments.search import DeploymentNumbers, DeploymentOption, DeploymentSearch
from hwsim.planning.deployments.site import sites_of
from hwsim.spec import SpecError, tree_of

DENSE = {"kind": "transformer", "layers": 8, "hidden": 2048, "heads": 16, "vocab": 8000, "sequence": 8192}
KINDS = ({**DENSE}, {**DENSE, "kv_heads": 4, "ffn": 8192}, {**DENSE, "experts": 8, "top_k": 2, "ffn": 2048})
AXES = (
    ("tp", "replicas"),
    ("tp", "budget", "replicas"),
    ("tp", "pp", "replicas"),
    ("tp", "split", "replicas"),
    ("tp", "dtype", "replicas"),
)
MANY = 10_000  # simulations


def question(seed: int, **more: Any) -> dict[str, Any]:
    """A random small question: a model, a load and some axes."""
    chance = random.Random(seed)
    users, prompt, output = chance.choice((3, 4, 7)), chance.choice((100, 600, 2500)), chance.choice((60, 120, 240))
    infer = {
        "model": KINDS[seed % len(KINDS)], "framework": chance.choice(("vllm", "sglang", "tensorrt-llm")),
        "arrivals": {"clients": users}, "prompt": {"uniform": [prompt // 2, prompt]},
        "output": {"uniform": [output // 2, output]},
    }  # fmt: skip
    axes = AXES[seed % len(AXES)]
    apart = "split" in axes or "pp" in axes  # slow simulations
    sizes = {"workload.infer.parallel.tp": [1, 2], "workload.infer.parallel.pp": [1, 2] if "pp" in axes else [1]}
    sizes |= (
        {"workload.infer.parallel.groups": [1, 2], "workload.infer.parallel.ep": [1, 2]}
        if "experts" in infer["model"] and not apart
        else {}
    )
    budgets = {"workload.infer.server.budget": [512, 4096]} if "budget" in axes else {}
    return {
        "hwsim": "plan/1", "machine": chance.choice(("dgx-h100", "l40s-8")), "workload": {"hwsim": "workload/1", "infer": infer},
        "vary": {"workload.infer": list(axes), **sizes, **budgets}, "simulate": MANY, **more,
    }  # fmt: skip


def every(asked: dict[str, Any]) -> list[tuple[DeploymentOption, DeploymentNumbers]]:
    """All deployments with any number of replicas, simulated."""
    read = read_question(tree_of(asked))
    search = DeploymentSearch(read, sites_of(read))
    search.run()
    (site,) = search.sites
    counts = {site.clients // share + (site.clients % share > 0) for share in range(1, site.clients + 1)}
    options = {(option.deployment, count): DeploymentOption(site, option.deployment, count)
               for option in search.options.values() for count in counts}  # fmt: skip
    return [(option, search.play(option)) for option in options.values()]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))])
def test_no_deployment_named_by_hand_beats_the_best_or_the_frontier_by_more_than_a_percent(seed: int) -> None:
    found = every(question(seed))
    answer = plan_deployment(read_question(tree_of(question(seed))))
    assert answer.best is not None
    assert answer.open_count == 0
    assert answer.best.numbers.per_gpu >= 0.99 * max(numbers.per_gpu for _, numbers in found)
    front = [row.numbers for row in answer.options if row.is_front]
    for option, numbers in found:
        over = max(min(numbers.per_gpu / row.per_gpu, numbers.per_user / row.per_user) for row in front)
        assert over <= 1.01, f"{option.replicas} x {option.deployment}"

    speeds = sorted(numbers.values["tpot_p95"] for _, numbers in found)  # the fewest GPUs that meet a requirement
    limit = random.Random(seed).choice(speeds[len(speeds) // 10 : len(speeds) // 2])
    limited = question(seed, require=[f"tpot_p95 at most {1.000001e6 * limit:.6f} us"])
    asked = plan_deployment(read_question(tree_of(limited)))
    assert asked.best is not None
    assert asked.best.meets
    assert asked.best.option.gpus <= min(option.gpus for option, numbers in found if numbers.values["tpot_p95"] <= limit)


def test_a_search_uses_the_gpus_of_the_workload_and_varies_the_replicas_in_any_case() -> None:
    asked = question(0)
    asked["workload"]["infer"]["device"] = "gpu0..1"
    asked["vary"]["workload.infer"] = ["tp"]
    read = read_question(tree_of(asked))
    (site,) = sites_of(read)
    assert (site.gpus, site.space.gpus) == (("gpu0", "gpu1"), 2)
    assert read.varied.deployments == frozenset({"tp", "replicas"})


REFUSED: tuple[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str], ...] = (
    ({"arrivals": {"day": {"mean": "5 1/s", "peak": "8 1/s"}}}, {}, {}, "needs a steady load"),
    ({"model": "bert-large"}, {}, {}, "needs a model that writes tokens"),
    (
        {"split": {"prefill": {"device": "gpu0"}, "decode": {"device": "gpu1"}}},
        {},
        {},
        "replaces `split`, which is not among its axes",
    ),
    ({"device": "cpu0"}, {}, {}, "cpu0 is no GPU"),
    ({"batching": "static"}, {}, {}, "continuous batching"),
    ({}, {"events": [{"slow": {"device": "gpu0", "to": 0.5, "from": "1 s"}}]}, {}, "compares steady states, without `events`"),
    ({}, {}, {"gpu0": {"kind": "gpu", "use": "a100-sxm-80gb"}, "gpu1": {"kind": "gpu", "use": "h100-sxm"}}, "needs equal GPUs"),
    ({}, {}, {"cpu": {"kind": "cpu", "use": "d2l-laptop-cpu"}}, "needs a machine with GPUs"),
)  # changed keys of `infer` and of the workload, another machine's parts


@pytest.mark.parametrize(("infer", "workload", "parts", "message"), REFUSED)
def test_what_the_search_does_not_model_is_refused(
    infer: dict[str, Any], workload: dict[str, Any], parts: dict[str, Any], message: str, tmp_path: Path
) -> None:
    asked = question(0)
    asked["workload"] = {**asked["workload"], **workload, "infer": {**asked["workload"]["infer"], **infer}}
    if parts:
        asked["machine"] = str(tmp_path / "another.yaml")
        Path(asked["machine"]).write_text(json.dumps({"hwsim": "machine/1", "name": "another", "parts": parts}), encoding="utf-8")
    with pytest.raises(SpecError, match=re.escape(message)):
        sites_of(read_question(tree_of(asked)))
