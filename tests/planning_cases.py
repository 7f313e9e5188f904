"""Questions that tests of plans share: a small cluster and its training, a loop on one core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hwsim.planning import PlanAnswer, plan

CLUSTER = """\
hwsim: machine/1
name: nodes of GPUs behind one switch
source: guess
let: {nodes: 2, gpu: h100-sxm}
parts:
  node:
    kind: machine
    count: $nodes
    parts:
      gpu: {kind: gpu, use: $gpu, count: 4}
      nvs: {kind: switch, use: nvswitch-h100}
      nic: {kind: nic, use: connectx-7-ndr400, count: 4}
    links:
      - {between: [gpu*, nvs], kind: nvlink, use: nvlink4, links: 6}
      - {name: cards, between: [gpu*, nic*], per: 1, kind: pcie, use: pcie5-x16}
  fabric: {kind: switch}
links:
  - {between: [node*.nic*, fabric], kind: infiniband, use: ndr400}
"""
TRAINING: dict[str, Any] = {
    "hwsim": "workload/1",
    "let": {"batch": 64},
    "train": {
        "model": "gpt2-xl",
        "sequence": 1024,
        "global_batch": "$batch",
        "dtype": "bf16",
        "parallel": "auto",
        "tokens": 3e11,
    },
}
LOOP = "hwsim: workload/1\nlet: {n: 4, us: 10 us, wait: 0 us}\nruntime: {dispatch: $wait}\nprogram:\n\
  - repeat: {times: $n, do: [{busy: {device: cpu, time: $us}}]}\n"
CORE = {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": {"kind": "cpu", "use": "d2l-laptop-cpu"}}}


def asked(**more: Any) -> PlanAnswer:
    """The answer for the small cluster."""
    return plan({"machine": CLUSTER, "workload": TRAINING, "failures": "none", **more})


def looped(vary: Mapping[str, Any], **more: Any) -> PlanAnswer:
    """The answer for a loop on one core."""
    import yaml

    core = yaml.safe_dump(CORE)
    return plan({"machine": core, "workload": LOOP, "vary": dict(vary), "failures": "none", **more})
