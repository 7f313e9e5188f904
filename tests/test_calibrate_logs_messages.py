"""What other tools print becomes parts: sizes and times of nccl-tests, fio and OSU."""

from __future__ import annotations

import json
import math

import pytest

from hwsim.spec import SpecError
from hwsim_calibrate.logs import Ask, Log, Result, fit_logs
from hwsim_calibrate.logs.knee import knee_of

HEAD = """# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid  1 on  host device  0 [0x1b] made up
#  Rank  1 Group  0 Pid  1 on  host device  1 [0x43] made up
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
# all_reduce_perf
"""


def read(tool: str, *texts: str) -> Result:
    return fit_logs(tool, [Log(f"{number}.txt", text) for number, text in enumerate(texts)], Ask())


def nccl(start: float = 20e-6, rate: float = 100e9) -> str:
    lines = []
    for power in range(3, 33):
        size = 2**power
        time = start + size / rate
        each = f"{time * 1e6:8.2f} {size / time / 1e9:7.2f} {size / time / 1e9:7.2f}"
        lines.append(f"{size:12d} {size // 4:12d}     float     sum      -1 {each}      0 {each}      0")
    return HEAD + "\n".join(lines) + "\n# Avg bus bandwidth    : 50\n"


def test_start_and_rate_of_nccl_tests_come_back() -> None:
    part = read("nccl-tests", nccl())
    assert part.said["kind"] == "overheads"
    assert "20 us" in part.yaml() or "20.0" in part.content()["start"]["value"] or "19.9" in part.content()["start"]["value"]
    assert "all-reduce among 2" in str(part.said["notes"])


def test_a_knee_is_told_from_a_straight_line() -> None:
    points = [(size, 10e-6 + (size - 1e6 * math.expm1(-size / 1e6)) / 50e9) for size in (8.0 * 2**power for power in range(29))]
    found = knee_of(points)
    assert found.start == pytest.approx(10e-6, rel=0.05)
    assert found.rate == pytest.approx(50e9, rel=0.05)
    assert found.knee == pytest.approx(1e6, rel=0.2)
    assert found.seconds(1e6) == pytest.approx(dict(points).get(1e6, 10e-6 + 1.632e6 / 50e9), rel=0.03)


def test_curves_of_osu_come_back() -> None:
    sizes = [2**power for power in range(23)]
    latency = "\n".join(f"{size:<12d} {(1.5e-6 + size / 12e9) * 1e6:18.2f}" for size in sizes)
    rates = "\n".join(f"{size:<12d} {size / (0.4e-6 + size / 24e9) / 1e6:18.2f}" for size in sizes)
    said = f"# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n{latency}\n"
    said += f"# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n{rates}\n"
    part = read("osu", said)
    assert set(part.content()["curves"]) == {"send", "stream"}
    assert part.content()["curves"]["stream"]["bandwidth"]["value"].endswith("GB/s")
    assert "mpi" in part.yaml()


def job(name: str, rw: str, bs: str, depth: int, rate: float, iops: float, latency: float) -> dict[str, object]:
    way = "write" if rw.endswith("write") else "read"
    side: dict[str, object] = {"io_bytes": 1 << 30, "bw_bytes": rate, "iops": iops, "lat_ns": {"mean": latency * 1e9}}
    idle: dict[str, object] = {"io_bytes": 0, "bw_bytes": 0, "iops": 0}
    options = {"rw": rw, "bs": bs, "iodepth": str(depth), "stonewall": ""}
    found: dict[str, object] = {"jobname": name, "job options": options, "read": idle, "write": idle}
    return found | {way: side}


def test_a_disk_comes_out_of_fio() -> None:
    jobs = [
        job("seq", "read", "1M", 32, 6.5e9, 6200, 5e-3),
        job("seqw", "write", "1M", 32, 4.9e9, 4700, 6e-3),
        job("one", "randread", "4k", 1, 50e6, 12000, 80e-6),
        job("deep", "randread", "4k", 256, 3.2e9, 800000, 300e-6),
    ]
    text = "fio: a line before it\n" + json.dumps({"fio version": "fio-3.36", "jobs": jobs})
    said = {key: value["value"] if isinstance(value, dict) else value for key, value in read("fio", text).content().items()}
    assert said["read"] == "6.5 GB/s"
    assert said["write"] == "4.9 GB/s"
    assert said["iops"].startswith("800")
    assert said["latency"].startswith("79")
    assert said["queue"] == 256


@pytest.mark.parametrize("tool", ["nccl-tests", "osu", "fio"])
def test_anything_else_is_refused_in_words(tool: str) -> None:
    with pytest.raises(SpecError, match="nothing in it was printed by"):
        read(tool, "hello\n1 2 3\n")
