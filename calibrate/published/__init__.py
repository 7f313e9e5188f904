"""The models beside what others measured and published, and beside reference simulators.

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

# Topic: (module in this package, what it is about).  A new topic is a new file and a line here.
TOPICS: Final[dict[str, str]] = {
    "attention": "attention of a prefill, by kernel",
    "bare": "GPUs and slots from their datasheets and classes",
    "babelstream": "memory bandwidth, BabelStream on all devices",
    "cnn_d2l": "the text's own notebooks",
    "cnn_inference": "inference of networks of convolutions",
    "cnn_training": "training of networks of convolutions",
    "cnn_simulated": "training of networks of convolutions, simulated",
    "collectives": "collectives of NCCL and MPI",
    "collectives_levels": "flows beside single sends",
    "collectives_serving": "NCCL by generation of links",
    "collectives_own": "all-reduces of frameworks by their own kernels",
    "collectives_text": "the text's own numbers",
    "core_to_core": "cache lines from core to core",
    "cpu_bandwidth": "bandwidth of CPUs: against cores, by level, BabelStream",
    "decode": "attention of decoding, by kernel",
    "dlrm_trace": "all-reduces and waiting in a recorded training step on eight V100",
    "dram": "DRAM beside Ramulator 2",
    "fio": "drives measured with fio",
    "gemm": "matrix products on GPUs",
    "gpu_bandwidth": "memory bandwidth of GPUs",
    "gpu_caches": "caches of GPUs",
    "gpu_kernels": "small kernels of GPUs",
    "gpu_latency": "latency of GPUs' memories",
    "hdd": "hard disks: seek and queue",
    "inference": "inference of language models, layer by layer",
    "bert": "encoders of BERT",
    "llm_training": "training of language models",
    "llm_memory": "memory of trainings",
    "llm_simulated": "training of language models, simulated",
    "moe": "experts, by kernel",
    "products_serving": "matrix products of serving frameworks",
    "programs": "recorded programs of numpy, and functions left out of a calibration",
    "peers": "all-reduces that other simulators were given",
    "serving": "models that are served",
    "ssd": "solid-state drives beside MQSim",
    "tinymembench": "latency of random reads on small computers",
    "twins_storage": "disks request by request",
    "hostdev": "copies between a host and its GPU",
    "latency_tables": "latency numbers of the text",
    "links": "NVLink, PCIe and networks",
    "one_core": "what one core moves to and from memory",
}

# Page of docs/validation: the topics it is of.  A topic in no page is of the first.
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
        "dlrm_trace",
        "peers",
        "collectives_levels",
    ),
}


def topics_of(page: str) -> tuple[str, ...]:
    """The topics of a page, in its order."""
    elsewhere = {topic for topics in PAGES.values() for topic in topics}
    return PAGES[page] or tuple(topic for topic in TOPICS if topic not in elsewhere)


def scores_of(topic: str, data: Path) -> tuple[Score, ...]:
    """The scores of one topic."""
    found: tuple[Score, ...] = importlib.import_module(f"{__name__}.{topic}").scores(data)
    return found
