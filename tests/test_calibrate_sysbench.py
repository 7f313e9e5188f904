"""sysbench's logs become what they measured, and nothing else; threads that set the pace measure no memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwsim.spec import SpecError
from hwsim_calibrate.logs import TOOLS, Log, LogOptions, Result, fit_logs
from hwsim_calibrate.logs.target_part import find_target_part
from tests.calibrate_logs import FOLDER

HEAD = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: {threads}
{more}Initializing random number generator from current time

"""
TAIL = """
General statistics:
    total time:                          60.0001s
    total number of events:              {events:.0f}

Latency (ms):
         min:                                    0.00
         avg:                                    {average:.2f}
         sum:                            {total:.2f}

"""
CPU = (
    HEAD.format(threads=4, more="") + "CPU speed:\n    events per second:  4322.01\n" + TAIL.format(events=1, average=1, total=1)
)


def memory(operation: str, block_kib: int, threads: int, rate: float, scope: str = "local", more: str = "") -> str:
    """A run of memory; rate: MiB/s."""
    return (
        HEAD.format(threads=threads, more=more)
        + f"""Running memory speed test with the following options:
  block size: {block_kib}KiB
  total size: 102400MiB
  operation: {operation}
  scope: {scope}

Total operations: 1000 ({rate * 1024 / block_kib:8.2f} per second)

{rate * 10:4.2f} MiB transferred ({rate:4.2f} MiB/sec)

"""
        + TAIL.format(events=1000, average=1, total=1)
    )


def files(
    mode: str, block: str, threads: int, reads: float, writes: float = 0.0, *, flags: str = "directio", way: str = "synchronous",
    fsyncs: float = 0.0, is_new: bool = False, more: str = "",
) -> str:  # fmt: skip
    """A run of files, as version 1.0 prints it, or 1.1."""
    mib = int(block[:-3]) * {"KiB": 2.0**-10, "MiB": 1.0}[block[-3:]]
    text = HEAD.format(threads=threads, more=more) + (
        f"Extra file open flags: {flags}\n128 files, 80MiB each\n10GiB total file size\nBlock size {block}\n"
        f"Using {way} I/O mode\nDoing {mode} test\n\n"
    )
    if is_new:
        text += (
            f"Throughput:\n         read:  IOPS={reads:.2f} {reads * mib:.2f} MiB/s ({reads * mib * 1.048576:.2f} MB/s)\n"
            f"         write: IOPS={writes:.2f} {writes * mib:.2f} MiB/s ({writes * mib * 1.048576:.2f} MB/s)\n"
            f"         fsync: IOPS={fsyncs:.2f}\n"
        )
    else:
        text += (
            f"File operations:\n    reads/s:  {reads:.2f}\n    writes/s:  {writes:.2f}\n    fsyncs/s:  {fsyncs:.2f}\n\n"
            f"Throughput:\n    read, MiB/s:  {reads * mib:.2f}\n    written, MiB/s:  {writes * mib:.2f}\n"
        )
    done = reads + writes
    return text + TAIL.format(events=60 * (done + fsyncs), average=threads / done * 1e3, total=60e3 * threads)


def fitted(text: str, part: str = "") -> Result:
    base = find_target_part(part, TOOLS["sysbench"].part_kinds, Path()) if part else None
    return fit_logs("sysbench", [Log("a", text)], LogOptions(base))


@pytest.mark.parametrize("is_new", [False, True])
def test_a_disk_has_what_direct_accesses_measured(is_new: bool) -> None:
    runs = [
        files("sequential read", "1MiB", 4, 3000, is_new=is_new), files("random read", "16KiB", 1, 9000, is_new=is_new),
        files("random read", "4KiB", 64, 160000, is_new=is_new), files("sequential rewrite", "1MiB", 4, 0, 2000, is_new=is_new),
    ]  # fmt: skip
    numbers = fitted("\n".join([*runs, CPU])).numbers()
    assert {key: number.value for key, number in numbers.items()} == pytest.approx(
        {"read": 3000 * 2.0**20, "write": 2000 * 2.0**20, "latency": 1 / 9000 - 16 / 3000 / 1024, "iops": 160000.0}
    )
    mixed = fitted(runs[0] + files("random r/w", "16KiB", 32, 24000, 16000, is_new=is_new))
    assert mixed.numbers()["iops"].value == 40000
    assert "60 % reads" in mixed.numbers()["iops"].note


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (files("random read", "4KiB", 4, 406841, flags="(none)"), "the page cache may have served it"),
        (files("random write", "4KiB", 4, 0, 900, fsyncs=1100), "writes wait for fsync"),
        (files("random read", "4KiB", 4, 40000, way="asynchronous"), "the queue depth of asynchronous I/O is unknown"),
        (files("random read", "4KiB", 4, 4000, more="Target transaction rate: 4000/sec\n"), "throttled to 4000/sec"),
        (files("random read", "16KiB", 1, 9000), "the log gives latency 111.1 us"),
        (files("random read", "16KiB", 1, 9000).replace("Block size 16KiB", "Block size 4KiB"), "does the file contain two logs"),
        (files("random read", "16KiB", 1, 9000).partition("Latency")[0], "the sum of latencies is missing"),
        (CPU, "no corresponding key"),
        (memory("read", 1 << 20, 1, 11000), "name the CPU: --part NAME"),
        (HEAD, "the file contains no output of sysbench's file or memory tests"),
    ],
)
def test_a_run_that_measures_no_disk_is_none(text: str, words: str) -> None:
    with pytest.raises(SpecError) as error:
        fitted(text)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (memory("write", 1, 1, 6089, "global"), "write allocate is unknown"),
        (memory("read", 1, 1, 6089), "fit in the caches of 117.4 MB"),
        (memory("read", 1 << 20, 56, 400000, "global"), "all threads share one block"),
        (memory("read", 1 << 20, 1, 300), "the accesses may be random"),
        (memory("read", 1 << 20, 8, 80000), "8 of 56 cores cannot saturate the memory"),
        (memory("read", 1 << 20, 1, 3000, more="Target transaction rate: 3/sec\n"), "throttled to 3/sec"),
    ],
)
def test_a_run_that_measures_no_memory_is_none(text: str, words: str) -> None:
    with pytest.raises(SpecError) as error:
        fitted(text, "xeon-8480")
    assert words in str(error.value)


def test_one_thread_measures_a_core_and_all_of_them_the_memory() -> None:
    one, every = memory("read", 1 << 20, 1, 11000), memory("read", 1 << 18, 56, 210000)
    core, both = fitted(one, "xeon-8480").numbers(), fitted(one + every + CPU, "xeon-8480").numbers()
    assert {key: number.value for key, number in core.items()} == pytest.approx({"core_bandwidth": 11000 * 2.0**20})
    assert both["core_bandwidth"] == core["core_bandwidth"]
    assert both["numa.efficiency"].value >= 210000 * 2.0**20 / 307.2e9


def test_a_loop_of_few_threads_measures_no_memory() -> None:
    """One thread of STREAM said that a socket sustains 6 % of its memory's bandwidth."""
    part = LogOptions(find_target_part("xeon-8480", ("cpu",), Path()))
    text = (FOLDER / "stream-1.txt").read_text()
    assert set(fit_logs("stream", [Log("a", text)], part).numbers()) == {"core_bandwidth"}
    with pytest.raises(SpecError, match="one thread measures a core"):
        fit_logs("stream", [Log("a", text)], LogOptions())
    small = "Array size = 10000000 (elements), Offset = 0 (elements)\nNumber of Threads counted = 128\n"
    small += "Copy:  1201000.5  0.000145  0.000133  0.000170\nAdd:  1320110.7  0.000195  0.000182  0.000230\n"
    with pytest.raises(SpecError, match="for 128 threads may fit in the caches"):
        fit_logs("stream", [Log("a", small)], LogOptions())
