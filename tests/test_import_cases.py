"""Small files as tools and people make them, of the reference data: each is read, or refused because it does not say enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import hwsim

TOOLS = {
    "aiperf": "aiperf", "babelstream": "babelstream", "fio": "fio", "hf": "huggingface", "ib": "ib-write-bw", "iperf3": "iperf3",
    "kineto": "kineto", "mlc": "mlc", "nccl": "nccl-tests", "nsys": "nsys", "osu": "osu", "sglang": "vllm", "stream": "stream",
    "vllm": "vllm",
}  # fmt: skip
REFUSED = {
    "fio_one_4k_depth1", "fio_rate_limited", "hf_qwen3_next", "ib_post_list", "iperf3_rate_limited", "kineto_cut_tail",
    "kineto_legacy_list", "kineto_negative_dur", "nsys_empty", "osu_mbw_mr", "sglang_bench", "stream_numactl_one_socket",
    "vllm_append", "vllm_one_table", "vllm_two_tables",
}  # fmt: skip


@pytest.mark.parametrize("prefix", TOOLS)
def test_a_file_is_read_or_refused_in_words(prefix: str, reference_data: Path) -> None:
    for path in sorted((reference_data / "cases" / "logs").glob(f"{prefix}[_.]*")):
        file = path / "config.json" if path.is_dir() else path
        hwsim("import", TOOLS[prefix], file, code=2 if path.stem in REFUSED else 0)
