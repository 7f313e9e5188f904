"""The models beside what others measured and published, and beside reference simulators.

    python -m calibrate.published --data DIR            print the scores
    python -m calibrate.published --data DIR --write    write docs/validation/components.md
    python -m calibrate.published --data DIR --fit gemm print what a topic's parameters would be

DIR holds `validation/` (measurements) and `oracles/` (reference simulators' curves); it is
$HWSIM_REFERENCE_DATA if that is set.  A topic is one module here with a function `scores(data)`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final

from calibrate.published.score import Score

# Topic: (module in this package, what it is about).  A new topic is a new file and a line here.
TOPICS: Final[dict[str, str]] = {
    "babelstream": "memory bandwidth, BabelStream on all devices",
    "collectives": "collectives of NCCL and MPI",
    "core_to_core": "cache lines from core to core",
    "cpu_bandwidth": "bandwidth of CPUs: against cores, by level, BabelStream",
    "dram": "DRAM beside Ramulator 2",
    "fio": "drives measured with fio",
    "gemm": "matrix products on GPUs",
    "gpu_bandwidth": "memory bandwidth of GPUs",
    "gpu_caches": "caches of GPUs",
    "gpu_kernels": "small kernels of GPUs",
    "gpu_latency": "latency of GPUs' memories",
    "hdd": "hard disks: seek and queue",
    "mlperf_storage": "storage behind accelerators, MLPerf Storage",
    "ssd": "solid-state drives beside MQSim",
    "tinymembench": "latency of random reads on small computers",
    "twins_storage": "disks request by request",
    "hostdev": "copies between a host and its GPU",
    "latency_tables": "latency numbers of the text",
    "links": "NVLink, PCIe and networks",
}


def scores_of(topic: str, data: Path) -> tuple[Score, ...]:
    """The scores of one topic."""
    found: tuple[Score, ...] = importlib.import_module(f"{__name__}.{topic}").scores(data)
    return found
