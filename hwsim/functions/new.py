"""A pair of files to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MACHINE: Final = """\
hwsim: machine/1
name: my workstation
parts:
  cpu: {kind: cpu, use: d2l-server-cpu}             # `hwsim show d2l-server-cpu` prints it; keys beside `use` override
  gpu: {kind: gpu, use: v100-sxm2-16gb, count: 2}   # gpu0 and gpu1
links:
  - {between: [cpu, gpu*], kind: pcie, gen: 3, lanes: 16}
"""
WORKLOAD: Final = """\
hwsim: workload/1
name: my first workload
let: {steps: 10, batch: 64}                         # hwsim simulate ... --set batch=128
program:
  each: gpu*                                        # one program per GPU; $self is that GPU
  do:
    - repeat:
        times: $steps
        do:
          - copy: {name: load, from: cpu, to: $self, bytes: $batch * 600 kB}
          - compute: {name: train, device: $self, flop: $batch * 12 GFLOP, dtype: fp32, after: load}
    - wait: all
"""
SERVER: Final = """\
hwsim: machine/1
name: my server
parts:
  cpu: {kind: cpu, use: epyc-7452}                  # 32 cores; `hwsim show epyc-7452` prints it; keys beside `use` override
  ssd: {kind: disk, use: nvme-pm9a3}
  client: {kind: cpu, use: epyc-7452}               # whoever asks
  nic: {kind: nic, use: xxv710-25gbe, count: 2}
links:
  - {between: [cpu, nic0], kind: pcie, use: pcie3-x16, lanes: 8}
  - {name: wire, between: [nic0, nic1], kind: ethernet, use: 25gbe}
  - {between: [nic1, client], kind: pcie, use: pcie3-x16, lanes: 8}
"""
SERVICE: Final = """\
hwsim: workload/1
name: my first service
let: {rate: 2000 1/s}                               # --set rate="4000 1/s"; --find rate: the largest that holds `expect`
services:
  web:
    device: cpu
    arrivals: {poisson: $rate}
    workers: 128
    request:                                        # each waits for the one before
      - busy: {name: parse, time: {exponential: 300 us}}
      - ask: {service: database, timeout: 100 ms, retries: 1, backoff: 20 ms}
      - busy: {name: render, time: {lognormal: {median: 2 ms, sigma: 0.5}}}
      - send: {name: page, to: client, bytes: 60 kB}
  database:
    device: cpu
    workers: 32
    queue_limit: 200
    request:
      - busy: {name: query, time: 500 us}
      - cache: {hit: 90 %, miss: [{read: {name: row, from: ssd, bytes: 16 KiB, access: random}}]}
requests: 20000
expect: {web.latency_p99: at most 20 ms}
"""
GPU_SERVER: Final = """\
hwsim: machine/1
name: my inference server
parts:
  cpu: {kind: cpu, use: xeon-8480}
  gpu: {kind: gpu, use: h100-sxm, count: 2}         # `hwsim show h100-sxm` prints it
  nvs: {kind: switch, use: nvswitch-h100}
links:
  - {between: [cpu, gpu*], kind: pcie, use: pcie5-x16}
  - {between: [gpu*, nvs], kind: nvlink, use: nvlink4, links: 18}
"""
MODEL: Final = """\
hwsim: workload/1
name: my first served model
let: {rate: 8 1/s, tp: 1}                           # --set tp=2; --find rate: the largest that holds `expect`
infer:
  model: llama-3-8b                                 # `hwsim show llama-3-8b`
  framework: vllm                                   # its scheduler's rules and defaults; also sglang, tensorrt-llm
  parallel: {tp: $tp, dp: rest}                     # copies of the model on the other GPUs
  dtype: bf16
  arrivals: {poisson: $rate}                        # or {clients: 32}: as many ask, and wait
  requests: 1000
  prompt: {lognormal: {median: 800, sigma: 0.6}}
  output: {lognormal: {median: 200, sigma: 0.6}}
  slo: {ttft: 500 ms, tpot: 50 ms}
expect: {ttft_p95: at most 500 ms, tpot_p95: at most 50 ms}
"""
TEMPLATES: Final = {
    "program": (MACHINE, WORKLOAD),
    "service": (SERVER, SERVICE),
    "served-model": (GPU_SERVER, MODEL),
}
FILES: Final = ("machine.yaml", "workload.yaml")


def new(folder: str | Path = ".", template: str = "program") -> tuple[Path, ...]:
    """Write machine.yaml and workload.yaml into a folder, which is made if it is not there.

    Args:
        template: program (on GPUs), service (a web server and its database) or served-model (a language model).

    Raises:
        FileExistsError: one of them is there already; nothing is written.
        ValueError: there is no such template.
    """
    from hwsim.views.kit.writing import write

    if template not in TEMPLATES:
        raise ValueError(f"there is no template '{template}'; there are {', '.join(TEMPLATES)}")
    folder = Path(folder)
    for name in FILES:
        if (folder / name).exists():
            raise FileExistsError(f"{folder / name} exists already")
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(write(folder / name, [text.encode()]) for name, text in zip(FILES, TEMPLATES[template], strict=True))
