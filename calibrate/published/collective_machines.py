"""The machines of published collectives, as far as their sources describe them, and curves that are in no table.

Where a source does not say what its network is, the rates are those that its own long messages reach (fitted, on the half
that parameters are fitted to), so that only latencies and protocols are left to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from published.parts import declared

MACHINES: Final[Mapping[str, str]] = declared("collective_machines")["machines"]

STAS: Final[Mapping[tuple[str, int, int], tuple[float, ...]]] = {
    (name, ranks, nodes): tuple(rates) for name, ranks, nodes, rates in declared("collective_machines")["stas"]
}


# Nodes on which served models' collectives were measured (nccl-tests, and the frameworks' own kernels); which GPUs of the
# PCIe servers share a switch or a socket is not stated: pairs under a switch, two pairs a socket (guessed from the rates).
_BOARD = """
hwsim: machine/1
class: ideal
collectives: {{use: {name}}}
parts:
  gpu: {{kind: gpu, use: {gpu}, count: {count}, memory: {{latency: 0 s}}}}
  nvswitch: {{kind: switch, reduces: {reduces}}}
links: [{{between: [gpu*, nvswitch], kind: nvlink, use: {link}, links: {links}}}]
"""
_SLOTS = """
hwsim: machine/1
class: ideal
collectives: {{use: {name}}}
parts:
  cpu: {{kind: cpu, use: {cpu}, count: 2}}
  psw: {{kind: switch, count: 4}}
  gpu: {{kind: gpu, use: {gpu}, count: 8, memory: {{latency: 0 s}}}}
links:
  - {{between: [cpu0, cpu1], kind: upi, use: {cpu}}}
  - {{between: [cpu*, psw*], per: 2, kind: pcie, use: {link}}}
  - {{between: [psw*, gpu*], per: 2, kind: pcie, use: {link}}}
"""
SERVING: Final[Mapping[str, str]] = {
    name: _BOARD.format(name=name, gpu=gpu, count=count, reduces=reduces, link=link, links=links)
    for name, gpu, count, reduces, link, links in (
        ("hgx-a100", "a100-sxm-80gb", 8, "false", "nvlink3", 12),
        ("hgx-h100", "h100-sxm", 8, "true", "nvlink4", 18),
        ("hgx-h200", "h200-sxm", 8, "true", "nvlink4", 18),
        ("hgx-b200", "b200", 8, "true", "nvlink5", 18),
        ("hgx-b300", "b200", 8, "true", "nvlink5", 18),  # of a B300 the NVLinks are those of a B200
        ("gb200-nvl72", "b200", 4, "true", "nvlink5", 18),
        ("gb300-nvl72", "b200", 4, "true", "nvlink5", 18),
    )
} | {
    name: _SLOTS.format(name=name, gpu=gpu, cpu="xeon-8480", link=link)
    for name, gpu, link in (("l40s-server", "l40s", "pcie4-x16"), ("rtx-pro-6000-server", "rtx-pro-6000", "pcie5-x16"))
}
