"""Compare predictions of hwsim with published measurements and with reference simulators.

    python -m published --data DIR            print the scores
    python -m published --data DIR --write    write the pages of docs/validation
    python -m published --data DIR --write --page collectives     write one of them
    python -m published --data DIR --errors   write hwsim/errors.yaml

DIR holds `validation/` (measurements), `oracles/` (reference simulators' curves) and `traces/` (recorded runs); it is
$HWSIM_REFERENCE_DATA if that is set.  A topic is one module here with a function `scores(data)`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final

from published.score import Score

# Topic (a module of this package): its title. A new topic needs a new module and an entry here and in declared/report.yaml.
TOPICS: Final[dict[str, str]] = {
    "attention": "attention kernels, prefill phase",
    "bare": "GPUs and PCIe slots from datasheets and class defaults",
    "babelstream": "memory bandwidth of GPUs and CPUs",
    "cnn_d2l": "training notebooks of the book",
    "cnn_inference": "CNN inference",
    "cnn_training": "CNN training, closed form",
    "cnn_simulated": "CNN training, simulated",
    "collectives": "NCCL and MPI collectives",
    "collectives_levels": "collectives: flow model against step model",
    "collectives_serving": "NCCL collectives by link generation",
    "collectives_own": "custom all-reduce kernels of serving frameworks",
    "collectives_text": "all-reduce times of the book",
    "core_to_core": "core-to-core latency of CPUs",
    "cpu_bandwidth": "memory and cache bandwidth of CPUs",
    "decode": "attention kernels, decode phase",
    "fabrics": "NCCL and RCCL between nodes",
    "dlrm_trace": "all-reduces in a recorded training step",
    "dram": "DRAM against Ramulator 2",
    "fio": "SSDs measured with fio",
    "gemm": "GEMMs on GPUs",
    "gpu_bandwidth": "memory bandwidth of GPUs",
    "gpu_caches": "cache bandwidth of GPUs",
    "gpu_kernels": "small kernels of GPUs",
    "gpu_latency": "memory latency of GPUs",
    "hdd": "hard disks: seek time and queue",
    "inference": "LLM inference, single kernels",
    "bert": "BERT inference",
    "llm_training": "LLM training, closed form",
    "llm_memory": "GPU memory of LLM training",
    "llm_simulated": "LLM training, simulated",
    "moe": "mixture-of-experts kernels",
    "products_serving": "GEMM kernels of serving frameworks",
    "programs": "NumPy programs on CPUs",
    "peers": "all-reduces against other simulators",
    "serving": "LLM serving",
    "ssd": "SSD closed form against MQSim",
    "tinymembench": "memory latency of small computers",
    "twins_storage": "SSDs and disks, request-level simulation",
    "hostdev": "copies between host and GPU",
    "latency_tables": "latency numbers of the book",
    "links": "NVLink, PCIe and networks",
    "one_core": "memory bandwidth of one core",
}

# Page of docs/validation: its topics. Topics that no page lists belong to the first page.
PAGES: Final[dict[str, tuple[str, ...]]] = {
    "components": (),
    "models": (
        "llm_training",
        "llm_memory",
        "llm_simulated",
        "inference",
        "bert",
        "cnn_training",
        "cnn_simulated",
        "cnn_inference",
        "cnn_d2l",
    ),
    "serving": ("serving",),
    "collectives": (
        "collectives_text",
        "collectives",
        "collectives_serving",
        "collectives_own",
        "fabrics",
        "dlrm_trace",
        "peers",
        "collectives_levels",
    ),
}


def topics_of(page: str) -> tuple[str, ...]:
    """Return the topics of a page, in the page's order."""
    elsewhere = {topic for topics in PAGES.values() for topic in topics}
    return PAGES[page] or tuple(topic for topic in TOPICS if topic not in elsewhere)


def scores_of(topic: str, data: Path) -> tuple[Score, ...]:
    """Return the scores of one topic."""
    found: tuple[Score, ...] = importlib.import_module(f"{__name__}.{topic}").scores(data)
    return found
