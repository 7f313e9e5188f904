"""Where the time of requests goes: parts add up, whatever holds them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hwsim.api import simulate
from hwsim.results.accounting import PARTS
from hwsim.results.serving import RequestRow, ServiceStatistics
from hwsim.ticks import FEMTO

SMALL = {"kind": "transformer", "layers": 4, "hidden": 1024, "heads": 16, "vocab": 8000, "sequence": 8192}
CASES: dict[str, dict[str, Any]] = {
    "prompts before answers": {},
    "chunks": {"chunk": 256},
    "static batches": {"batching": "static", "batch": 8},
    "few places": {"batch": 4},
    "little room": {"memory": "2.1 %", "chunk": 512, "prompt": {"uniform": [100, 1500]}, "arrivals": "all at once"},
    "split": {"parallel": {"tp": 2, "dp": 2}, "device": "gpu*"},
}


def served(**keys: Any) -> ServiceStatistics:
    infer = {
        "model": SMALL, "device": "gpu0", "arrivals": {"poisson": "600 1/s"}, "requests": 120,
        "prompt": {"lognormal": {"median": 600, "sigma": 1.0}}, "output": {"uniform": [1, 90]}, **keys,
    }  # fmt: skip
    [found] = simulate("dgx-h100", {"hwsim": "workload/1", "infer": infer}, expect=False).serving
    return found


def part(rows: tuple[RequestRow, ...], name: str) -> int:
    return sum(row.parts_fs[PARTS.index(name)] for row in rows)


@pytest.mark.parametrize("keys", CASES.values(), ids=list(CASES))
def test_parts_of_a_request_add_up_to_its_latency_to_the_femtosecond(keys: Mapping[str, Any]) -> None:
    found = served(**keys)
    for row in found.rows:
        assert min(row.parts_fs) >= 0, row
        assert sum(row.parts_fs) == round(row.end_s * FEMTO) - round(row.arrival_s * FEMTO)
    for where in found.where:
        assert sum(seconds for _, seconds in where.parts) == pytest.approx(where.mean_s, rel=1e-12)
