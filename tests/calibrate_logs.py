"""Small logs in the formats of benchmarks, made up: one of each tool."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hwsim_calibrate.logs import TOOLS, LogOptions
from hwsim_calibrate.logs.target_part import find_target_part

FOLDER: Final = Path(__file__).parent / "data" / "logs"
LOGS: Final = {
    "nccl-tests": "nccl-tests.txt", "osu": "osu.txt", "fio": "fio.json", "stream": "stream-56.txt",
    "babelstream": "babelstream.txt", "mlc": "mlc.txt", "ib-write-bw": "ib_write_bw.txt",
    "iperf3": "iperf3.json", "vllm": "vllm.json",
    "sysbench": "sysbench.txt", "aiperf": "aiperf.json", "guidellm": "guidellm.json", "inference-perf": "inference-perf.json",
}  # fmt: skip
MODELS: Final = {"inference-perf": "llama-3-8b"}
PARTS: Final = {"stream": "xeon-8480", "babelstream": "h100-sxm", "mlc": "xeon-8480"}


def ask_of(tool: str) -> LogOptions:
    """What a log of a tool leaves open."""
    return LogOptions(
        find_target_part(PARTS[tool], TOOLS[tool].part_kinds, Path()) if tool in PARTS else None, 0, MODELS.get(tool, "")
    )
