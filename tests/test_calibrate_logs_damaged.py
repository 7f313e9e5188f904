"""Damaged, cut off, mixed-up and hostile logs: a part that hwsim accepts, or one error with its place; traps of each format."""

from __future__ import annotations

import gzip
import json
import math
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.functions.files import check_tree
from hwsim.spec import SpecError, read_text
from hwsim_calibrate.logs import TOOLS, Ask, Log, Result, fit_logs, read_log
from hwsim_calibrate.logs.base import Base, base_of
from tests.calibrate_logs import FOLDER, LOGS, PARTS

ODD = (
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "1e-320",
    "9" * 30,
    "9" * 5000,
    "N/A",
    "",
    '"',
    "{",
    "}",
    "\x1b[31m",
    "\u2028",
    "1,5",
    "null",
    "[]",
)


@cache
def text_of(tool: str) -> str:
    return (FOLDER / LOGS[tool]).read_text()


@cache
def base(part: str, tool: str) -> Base:
    return base_of(part, TOOLS[tool].into, Path())


def fitted(tool: str, *texts: str, part: str = "") -> Result:
    logs = [Log(f"{number}.txt", text) for number, text in enumerate(texts)]
    return fit_logs(tool, logs, Ask(base(part, tool) if part else None))


def changed(tool: str, *swaps: tuple[str, str]) -> str:
    text = text_of(tool)
    for before, after in swaps:
        assert before in text
        text = text.replace(before, after, 1)
    return text


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    lines = text.split("\n")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["cut", "drop", "twice", "swap", "word", "end", "part"])):
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "drop":
                lines = lines[:at] + lines[at + 1 :] or [""]
            case "twice":
                lines.insert(draw(st.integers(0, len(lines))), lines[at])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "word":
                words = lines[at].split(" ")
                words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(ODD))
                lines[at] = " ".join(words)
            case "end":
                lines = lines[: at + 1]
            case _:
                lines = lines[at:]
    return "\n".join(lines)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_damaged_log_is_a_part_or_an_error_with_its_place(tool: str) -> None:
    @settings(max_examples=40)
    @given(damaged(text_of(tool)))
    def check(text: str) -> None:
        try:
            result = fitted(tool, text, part=PARTS.get(tool, ""))
        except SpecError as error:
            [mistake] = error.mistakes
            assert mistake.place is not None
            assert mistake.place.file == "0.txt"
            return
        try:
            check_tree(read_text(result.yaml()))
        except SpecError:
            return  # numbers of no part, which the command says
        json.dumps(result.to_json(), allow_nan=False)
        assert all(math.isfinite(row.error) for row in result.rows)
        assert str(result)

    check()


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("text", ["hello\n1 2 3\n", "{}", "[1, 2]\n", "{" * 5000, '{"jobs": ' + "9" * 5000 + "}\n"])
def test_anything_else_is_refused(tool: str, text: str) -> None:
    with pytest.raises(SpecError) as error:
        fitted(tool, text, part=PARTS.get(tool, ""))
    assert len(error.value.mistakes) == 1
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b" \n\n", "it is empty"),
        (gzip.compress(b"x", mtime=0), "it is packed"),
        (b"\x7fELF\x00\x00", "it is no text"),
    ],
)
def test_what_is_no_log_at_all_is_told(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(SpecError, match=words):
        read_log(tmp_path / "log")


def test_line_breaks_and_encodings_of_other_systems(tmp_path: Path) -> None:
    text = text_of("stream")
    expected = fitted("stream", text).yaml()
    for number, data in enumerate((text.replace("\n", "\r\n").encode(), text.encode("utf-16"), text.encode("utf-8-sig"))):
        (tmp_path / str(number)).write_bytes(data)
        assert fit_logs("stream", [read_log(tmp_path / str(number))], Ask()).yaml() == expected.replace("0.txt", str(number))


@pytest.mark.parametrize(
    ("tool", "swaps", "words"),
    [
        ("nccl-tests", [("      0 ", "      3 ")], r"17:1: 3 wrong values"),
        ("nccl-tests", [("  2083.71", "  4083.71")], r"30:1: algbw is 257.65 GB/s, but"),
        ("stream", [("166512.3", "16651.23")], r"19:1: 16651.2 MB/s, but arrays of 3.2e\+09 B"),
        ("stream", [("Solution Validates", "Failed Validation on array")], "computed wrong values"),
        ("stream", [("400000000 (elements), O", "400000 (elements), O")], "two logs in one file"),
        ("mlc", [("       1\t 194.5\t 113.1\t\n", "")], "a table of 2 nodes has 1 rows"),
        ("mlc", [(" 194.5\t 113.1", " 194.5")], "row 1 with 1 numbers in a table of 2 nodes"),
        ("lmbench", [("stride=512", "stride=16")], "a stride of 16 B reads a line of 64 B several times"),
        ("ib-write-bw", [("peak[MiB/sec]", "peak[Gb/sec]")], "another unit"),
        ("ib-write-bw", [("peak[MiB/sec]", "peak[Furlongs/sec]")], "unknown unit Furlongs/sec"),
        ("iperf3", [('"sum_received"', '"sum_lost"')], "no `sum_received`"),
        ("iperf3", [("warning:", "iperf3: error - unable to connect to server: Connection refused")], "1:1: the run failed"),
        ("fio", [('"error": 0', '"error": 5')], r"the job ended with error 5"),
        ("fio", [("fio: file", "3;fio-3.36;")], "terse output"),
        ("vllm", [('"completed": 200', '"completed": 0')], "no request was answered"),
        ("vllm", [('"duration": 21.36', '"duration": 2136')], "two results in one file"),
        ("vllm", [("Meta-Llama-3-8B-Instruct", "Llama-9-8B")], "'meta-llama/Llama-9-8B' is not in the library"),
        ("trtllm", [('"pp_size": 1', '"pp_size": 2')], "pipeline parallel over 2"),
        ("trtllm", [('"world_size": 4', '"world_size": 8')], "of a GPU times 8 GPUs are not"),
        ("trtllm", [('"quantization": "FP8"', '"quantization": "NVFP4"')], "weights in NVFP4"),
        ("mlperf-storage", [('"train_au_mean_percentage": 87.1', '"train_au_mean_percentage": 871')], "busy for 871 %"),
    ],
)
def test_a_trap_is_an_error_with_its_place(tool: str, swaps: list[tuple[str, str]], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        fitted(tool, changed(tool, *swaps), part=PARTS.get(tool, ""))


def test_logs_that_do_not_belong_together_are_refused() -> None:
    for tool, swap, words in (
        ("nccl-tests", ("all_reduce_perf", "all_gather_perf"), "all-gather among 8, and 0.txt is all-reduce among 8"),
        ("vllm", ('"request_rate": 10.0', '"request_rate": "inf"'), "the rate: not said, but 10.0 in 0.txt"),
        ("mlperf-storage", ('"train_io_mean_MB_per_second": 21', '"train_io_mean_MB_per_second": 11'), "samples of"),
        ("iperf3", ('"protocol": "TCP"', '"protocol": "UDP"'), "one log is of TCP and one of UDP"),
    ):
        with pytest.raises(SpecError, match=words):
            fitted(tool, text_of(tool), changed(tool, swap))


def test_columns_are_counted_from_the_right_and_checks_may_be_missing() -> None:
    whole = fitted("nccl-tests", text_of("nccl-tests")).numbers()["start"].value
    short = text_of("nccl-tests").replace("     float     sum      -1 ", "     float ").replace("      0 ", "    N/A ")
    assert fitted("nccl-tests", short).numbers()["start"].value == pytest.approx(whole)


def test_old_fio_says_microseconds_and_processes_report_apart() -> None:
    old = (
        text_of("fio")
        .replace('"lat_ns"', '"lat"')
        .replace('"mean": 78400.0', '"mean": 78.4')
        .replace('"mean": 78399.99999999999', '"mean": 78.4')
    )
    assert fitted("fio", old).content()["latency"]["value"] == "77.80 us"
    apart = json.loads(text_of("fio").partition("\n")[2])
    del apart["jobs"][3]["job options"]["group_reporting"]
    apart["jobs"] += [apart["jobs"][3]] * 3
    found = fitted("fio", json.dumps(apart)).content()
    assert found["iops"]["value"] == "3232000 1/s"
    assert found["queue"] == 256


def test_units_of_lmbench_are_told_by_its_sizes() -> None:
    million = "\n".join(
        line if "stride" in line or not line else f"{float(line.split()[0]) * 1.048576:.5f} {line.split()[1]}"
        for line in text_of("lmbench").split("\n")
    )
    one, other = (fitted("lmbench", text, part="xeon-8480").numbers() for text in (text_of("lmbench"), million))
    assert other["memory.latency"].value == pytest.approx(one["memory.latency"].value)


@cache
def bare_cpu(folder: Path) -> Base:
    """A cpu that says nothing of its caches."""
    file = folder / "cpu.yaml"
    file.write_text(
        "hwsim: part/1\nkind: cpu\ncores: 8\nflop: {fp64: 100 GFLOP/s}\nmemory: {bandwidth: 100 GB/s}\nclass: ideal\n"
    )
    return base_of(str(file), ("cpu",), folder)


def test_sizes_of_caches_are_read_off_where_no_part_says_them(tmp_path: Path) -> None:
    result = fit_logs("lmbench", [Log("a", text_of("lmbench"))], Ask(bare_cpu(tmp_path)))
    assert list(result.content()["caches"]["levels"]) == ["L1", "L2", "L3"]
    numbers = result.numbers()
    sizes, delays = ([numbers[f"caches.levels.L{level}.{key}"].value for level in (1, 2, 3)] for key in ("size", "latency"))
    assert sizes == pytest.approx([48 * 2**10, 2 * 2**20, 105 * 2**20], rel=0.15)
    assert delays == pytest.approx([1.32e-9, 4.21e-9, 33.4e-9], rel=0.02)


def test_a_published_chain_of_reads_has_its_plateaus(tmp_path: Path) -> None:
    """A Chromebook (the comment on lat_mem_rd in ChromiumOS's tast-tests): 32 KiB, then 2 MiB or more, and prefetched memory."""
    rows = {
        1.182: (0.00049, 0.00098, 0.00195, 0.00391, 0.00781, 0.01562, 0.02344), 1.184: (0.03125,), 3.546: (0.04688, 0.0625),
        3.603: (0.125,), 3.635: (0.1875,), 3.884: (0.25,), 4.018: (0.375,), 4.098: (0.5, 0.75), 4.106: (1.0, 1.5), 4.206: (2.0,),
        4.446: (3.0,), 5.154: (4.0,), 5.611: (6.0,), 5.813: (8.0,), 5.894: (12.0,), 5.938: (16.0,), 6.001: (32.0,), 6.03: (64.0,),
    }  # fmt: skip
    text = '"stride=128\n' + "".join(f"{size:.5f} {delay}\n" for delay, sizes in rows.items() for size in sizes)
    numbers = fit_logs("lmbench", [Log("a", text)], Ask(bare_cpu(tmp_path))).numbers()
    assert numbers["caches.levels.L1.size"].value == pytest.approx(38e3, rel=0.1)  # between 31 KiB and 47 KiB
    assert numbers["caches.levels.L1.latency"].value == pytest.approx(1.182e-9)
    assert numbers["caches.levels.L2.latency"].value == pytest.approx(4.1e-9, rel=0.05)
    assert numbers["memory.latency"].value == pytest.approx(5.9e-9, rel=0.05)
    assert numbers["memory.latency"].spread >= 0.25


@given(damaged(text_of("lmbench")))
def test_damaged_chains_of_reads_of_an_unknown_cpu(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    own = bare_cpu(tmp_path_factory.getbasetemp())
    try:
        result = fit_logs("lmbench", [Log("a", text)], Ask(own))
    except SpecError:
        return
    assert str(result)
    assert result.numbers()


def test_udp_that_was_lost_is_not_counted() -> None:
    content = json.loads(text_of("iperf3").partition("\n")[2])
    content["start"]["test_start"]["protocol"] = "UDP"
    content["end"] = {"sum": {"bits_per_second": 20e9, "lost_percent": 10.0, "seconds": 10}}
    assert "18 Gb/s received" in fitted("iperf3", json.dumps(content)).content()["notes"]
