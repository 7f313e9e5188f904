"""The machines of published collectives, as far as their sources describe them, and curves that are in no table.

Where a source does not say what its network is, the rates are those that its own long messages reach (fitted, on the half
that parameters are fitted to), so that only latencies and protocols are left to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MACHINES: Final[Mapping[str, str]] = {
    # Four A100 SXM, four NVLinks between any two (12 / 3).
    "a100-4gpu": """
hwsim: machine/1
class: ideal
collectives: {use: a100-4gpu}
parts: {gpu: {kind: gpu, use: a100-sxm-80gb, count: 4, memory: {latency: 0 s}}}
links: [{topology: fully-connected, of: gpu*, kind: nvlink, use: nvlink3, links: 4}]
""",
    # Two DGX A100.  One pair of GPUs reaches 7.8 GB/s between the nodes, 11.7 GB/s in both directions; four pairs 21.5 GB/s.
    "dgx-a100-vidur": """
hwsim: machine/1
class: ideal
collectives: {use: dgx-a100-vidur}
parts:
  node:
    kind: machine
    count: 2
    parts:
      gpu: {kind: gpu, use: a100-sxm-80gb, count: 8, memory: {latency: 0 s}}
      nvswitch: {kind: switch}
      port: {kind: switch, count: 8, bandwidth: 11.7 GB/s}
      out: {kind: switch}
    links:
      - {between: [gpu*, nvswitch], kind: nvlink, use: nvlink3, links: 12}
      - {between: [gpu*, port*], per: 1, kind: direct, bandwidth: 7.8 GB/s}
      - {between: [port*, out], kind: direct, bandwidth: 7.8 GB/s}
  fabric: {kind: switch}
links: [{between: [node*.out, fabric], kind: direct, bandwidth: 21.5 GB/s}]
""",
    # Two DGX H100; a pair of GPUs reaches 35 GB/s between the nodes.
    "dgx-h100-vidur": """
hwsim: machine/1
class: ideal
collectives: {use: dgx-h100-vidur}
parts:
  node:
    kind: machine
    count: 2
    parts:
      gpu: {kind: gpu, use: h100-sxm, count: 8, memory: {latency: 0 s}}
      nvswitch: {kind: switch}
      out: {kind: switch}
    links:
      - {between: [gpu*, nvswitch], kind: nvlink, use: nvlink4, links: 18}
      - {between: [gpu*, out], kind: direct, bandwidth: 36 GB/s}
  fabric: {kind: switch}
links: [{between: [node*.out, fabric], kind: direct, bandwidth: 288 GB/s}]
""",
    # Four A100 PCIe, bridges of twelve NVLinks between 0 and 1 and between 2 and 3, the rest over PCIe 4.0.
    "a100-pcie-pairs": """
hwsim: machine/1
class: ideal
collectives: {use: a100-pcie-pairs}
parts:
  gpu: {kind: gpu, use: a100-pcie-80gb, count: 4, memory: {latency: 0 s}}
  host: {kind: switch}
links:
  - {between: [gpu0, gpu1], kind: nvlink, use: nvlink3, links: 12}
  - {between: [gpu2, gpu3], kind: nvlink, use: nvlink3, links: 12}
  - {between: [gpu*, host], kind: pcie, gen: 4, lanes: 16}
""",
    # Two p4de: eight A100 on NVSwitches, four EFA cards of 100 Gb/s.
    "p4de": """
hwsim: machine/1
class: ideal
collectives: {use: p4de}
parts:
  node:
    kind: machine
    count: 2
    parts:
      gpu: {kind: gpu, use: a100-sxm-80gb, count: 8, memory: {latency: 0 s}}
      nvswitch: {kind: switch}
      out: {kind: switch}
    links:
      - {between: [gpu*, nvswitch], kind: nvlink, use: nvlink3, links: 12}
      - {between: [gpu*, out], kind: direct, bandwidth: 12.5 GB/s}
  fabric: {kind: switch}
links: [{between: [node*.out, fabric], kind: direct, bandwidth: 50 GB/s}]
""",
    "nd96asr-v4": """
hwsim: machine/1
class: ideal
collectives: {use: nd96asr-v4}
parts:
  gpu: {kind: gpu, use: a100-sxm-40gb, count: 8, memory: {latency: 0 s}}
  nvswitch: {kind: switch}
links: [{between: [gpu*, nvswitch], kind: nvlink, use: nvlink3, links: 12}]
""",
    "h200": """
hwsim: machine/1
class: ideal
collectives: {use: h200}
parts:
  gpu: {kind: gpu, use: h200-sxm, count: 8, memory: {latency: 0 s}}
  nvswitch: {kind: switch}
links: [{between: [gpu*, nvswitch], kind: nvlink, use: nvlink4, links: 18}]
""",
    # Nodes of eight B200, an EFA card of 400 Gb/s for each GPU.
    "b200": """
hwsim: machine/1
class: ideal
collectives: {use: b200}
parts:
  node:
    kind: machine
    count: 4
    parts:
      gpu: {kind: gpu, use: b200, count: 8, memory: {latency: 0 s}}
      nvswitch: {kind: switch}
      out: {kind: switch}
    links:
      - {between: [gpu*, nvswitch], kind: nvlink, use: nvlink5, links: 18}
      - {between: [gpu*, out], kind: direct, bandwidth: 50 GB/s}
  fabric: {kind: switch}
links: [{between: [node*.out, fabric], kind: direct, bandwidth: 400 GB/s}]
""",
}

# Bus bandwidth in GB/s of all-reduces of 32 KiB, 64 KiB, ... 16 GiB: (machine, ranks, nodes).
# Source: stas00/ml-engineering@744d01e18b79, network/README.md (torch.distributed, NCCL 2.27.7).
STAS: Final[Mapping[tuple[str, int, int], tuple[float, ...]]] = {
    ("h200", 8, 1): (
        1.44, 2.93, 5.73, 11.74, 23.94, 39.93, 64.53, 107.16, 155.53, 219.89, 275.84, 346.51, 401.93, 436.15, 450.29, 463.58,
        469.17, 473.10, 477.45, 482.26,
    ),
    ("b200", 8, 1): (
        1.20, 2.17, 4.86, 9.54, 18.71, 36.06, 63.09, 76.48, 126.49, 254.96, 325.97, 400.60, 568.38, 646.11, 688.99, 723.34,
        734.97, 740.64, 839.07, 845.67,
    ),
    ("b200", 32, 4): (
        0.01, 0.04, 0.45, 1.33, 2.84, 5.37, 10.38, 18.90, 35.12, 64.43, 91.19, 156.74, 197.94, 229.09, 326.90, 361.99, 372.42,
        377.34, 380.39, 381.80,
    ),
}  # fmt: skip


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
