"""The steady state of a replica in closed form is near the simulation of a closed loop."""

from __future__ import annotations

import pytest

import hwsim
from hwsim.families.serving.steady_state import SteadyService
from hwsim.families.serving.workload.placement import plan_service
from hwsim.spec import Mistakes, tree_of
from tests.served import dgx

TOGETHER = {"device": "gpu0..1", "parallel": {"tp": 2}}
APART = {"split": {"prefill": {"device": "gpu0"}, "decode": {"device": "gpu1..2", "parallel": {"tp": 2}}}}


@pytest.mark.parametrize(("placed", "users", "framework"), [
    (TOGETHER, 1, "vllm"), (TOGETHER, 16, "vllm"), (TOGETHER, 64, "sglang"), (TOGETHER, 64, "tensorrt-llm"), (APART, 16, "vllm"),
])  # fmt: skip
def test_throughput_of_a_closed_loop(placed: dict[str, object], users: int, framework: str) -> None:
    infer = {
        "model": "llama-3-8b", "dtype": "bf16", "framework": framework, "arrivals": {"clients": users}, "requests": 4 * users + 8,
        "prompt": {"uniform": [800, 1000]}, "output": {"uniform": [400, 500]}, **placed,
    }  # fmt: skip
    plan = plan_service(tree_of(infer), dgx(), Mistakes())
    assert plan is not None
    state = SteadyService(plan, dgx()).with_users(users)
    (found,) = hwsim.simulate(dgx(), {"hwsim": "workload/1", "infer": infer}, expect=False, interval=False).serving
    assert state.requests_per_s == pytest.approx(users / found.latency.mean, rel=0.08)
    assert found.each_token is not None
    assert state.tpot_s == pytest.approx(found.each_token.mean, rel=0.1)


def test_an_arrival_rate_is_completed_or_refused() -> None:
    infer = {"model": "llama-3-8b", "dtype": "bf16", "prompt": 500, "output": 200, "requests": 50, "device": "gpu0"}
    plan = plan_service(tree_of(infer), dgx(), Mistakes())
    assert plan is not None
    service = SteadyService(plan, dgx())
    state = service.at_rate(5.0)
    assert state is not None
    assert state.requests_per_s == pytest.approx(5.0, rel=0.03)
    assert service.at_rate(1000.0) is None
