"""What would take hours or terabytes is refused before it begins, says what it would take, and can be asked for all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.engine import core
from hwsim.spec import SpecError, limits
from hwsim.spec.limits import LIMITS, REQUESTS, refuse_beyond
from tests import command

PIPELINE = {
    "hwsim": "workload/1",
    "pipeline": {"batches": 10, "epochs": 2_000_000_000, "stages": [{"busy": {"device": "cpu", "time": "1 ms"}}]},
}
TRAIN = {
    "hwsim": "workload/1",
    "train": {"model": "gpt2", "parallel": {"dp": 4}, "microbatch": 1, "global_batch": 8_000_000_000_000, "sequence": 128},
}
SERVED = {"hwsim": "workload/1", "infer": {"model": "gpt2", "device": "gpu0", "requests": 1_000_000_000}}


def services(arrivals: dict[str, Any], **end: Any) -> dict[str, Any]:
    """A service to which requests come so."""
    web = {"device": "cpu", "arrivals": arrivals, "request": [{"busy": {"time": "1 us"}}]}
    return {"hwsim": "workload/1", "services": {"web": web}, **end}


ARRIVING = services({"poisson": "1e6 1/s"}, **{"for": "100 h"})
COUNTED = services({"every": "1 ms"}, requests=10**9)
CROWD = services({"clients": 10**9, "think": "1 s"}, requests=5)
LOOP = {"hwsim": "workload/1", "program": [{"repeat": {"times": 10**9, "do": [{"busy": {"device": "cpu", "time": "1 ms"}}]}}]}


@pytest.mark.parametrize(
    ("workload", "unit"),
    [(PIPELINE, "ops"), (TRAIN, "ops"), (SERVED, "requests"), (LOOP, "ops"), (ARRIVING, REQUESTS),
     (COUNTED, REQUESTS), (CROWD, "clients")],
    ids=["epochs", "batch", "served model", "loop", "rate", "requests", "clients"],
)  # fmt: skip
def test_too_much_is_refused_with_what_it_would_take(workload: dict[str, Any], unit: str) -> None:
    with pytest.raises(SpecError, match=rf"\d {unit} exceed the limit of {LIMITS[unit].most:,}; they would take about") as caught:
        hwsim.simulate("d2l-4gpu-pcie", workload)
    assert "--no-limits" in str(caught.value)


@pytest.mark.parametrize("compiled", ["never", "always"])
def test_requests_of_clients_are_counted_as_they_come(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled == "always" and not core.is_there():
        pytest.skip(str(core.found()))
    monkeypatch.setenv("HWSIM_FAST", compiled)
    monkeypatch.setitem(LIMITS, REQUESTS, LIMITS[REQUESTS]._replace(most=20_000))
    hwsim.simulate("web-server", services({"clients": 3}, requests=20_000))
    with pytest.raises(SpecError, match="requests of services exceed the limit of"):
        hwsim.simulate("web-server", services({"clients": 3}, **{"for": "100 ms"}))


def test_more_clients_than_requests_are_as_many_as_there_are_requests() -> None:
    def time(clients: int) -> float:
        infer = {"model": "gpt2", "device": "gpu0", "arrivals": {"clients": clients}, "requests": 5, "prompt": 50, "output": 4}
        return hwsim.simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "infer": infer}).makespan_s

    assert time(16_000_000_000) == time(5)


def test_the_limit_itself_may_be_reached() -> None:
    for unit, limit in LIMITS.items():
        refuse_beyond(unit, limit.most)
        with pytest.raises(SpecError):
            refuse_beyond(unit, limit.most + 1)


def test_one_option_lifts_all_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIMITS", {unit: limit._replace(most=2) for unit, limit in LIMITS.items()})
    monkeypatch.delenv(limits.VARIABLE, raising=False)
    monkeypatch.setenv("HWSIM_LIMITS", "")
    (tmp_path / "w.yaml").write_text(json.dumps(PIPELINE))
    arguments = ["simulate", "d2l-laptop", str(tmp_path / "w.yaml"), "--set", "workload.pipeline.epochs=2", "-q"]
    command.hwsim(*arguments, code=2)
    command.hwsim("--no-limits", *arguments)
