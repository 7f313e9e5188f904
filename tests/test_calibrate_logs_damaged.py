"""Damaged, cut off, mixed-up and hostile logs: a part that hwsim accepts, or one error with its place; traps of each format."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest

from hwsim.spec import SpecError
from hwsim_calibrate.logs import TOOLS, Log, LogOptions, Result, fit_logs, read_log
from hwsim_calibrate.logs.target_part import TargetPart, find_target_part
from tests.calibrate_logs import FOLDER, LOGS, PARTS
from tests.each import each


@cache
def text_of(tool: str) -> str:
    return (FOLDER / LOGS[tool]).read_text()


@cache
def base(part: str, tool: str) -> TargetPart:
    return find_target_part(part, TOOLS[tool].part_kinds, Path())


def fitted(tool: str, *texts: str, part: str = "") -> Result:
    logs = [Log(f"{number}.txt", text) for number, text in enumerate(texts)]
    return fit_logs(tool, logs, LogOptions(base(part, tool) if part else None))


def changed(tool: str, *swaps: tuple[str, str]) -> str:
    text = text_of(tool)
    for before, after in swaps:
        assert before in text
        text = text.replace(before, after, 1)
    return text


@each("tool", TOOLS)
@each("text", ["hello\n1 2 3\n", "{}", "[1, 2]\n", "{" * 5000, '{"jobs": ' + "9" * 5000 + "}\n"])
def test_anything_else_is_refused(tool: str, text: str) -> None:
    with pytest.raises(SpecError) as error:
        fitted(tool, text, part=PARTS.get(tool, ""))
    assert len(error.value.mistakes) == 1
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (gzip.compress(b"x", mtime=0), "the file is compressed"),
        (b"\x7fELF\x00\x00", "the file is not text"),
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
        assert fit_logs("stream", [read_log(tmp_path / str(number))], LogOptions()).yaml() == expected.replace(
            "0.txt", str(number)
        )


@pytest.mark.parametrize(
    ("tool", "swaps", "words"),
    [
        ("nccl-tests", [("      0 ", "      3 ")], r"17:1: the test computed 3 wrong values"),
        ("nccl-tests", [("  2083.71", "  4083.71")], r"30:1: algbw is 257.65 GB/s, but"),
        ("stream", [("166512.3", "16651.23")], r"19:1: 16651.2 MB/s, but arrays of 3.2e\+09 B"),
        ("stream", [("Solution Validates", "Failed Validation on array")], "failed its validation"),
        ("stream", [("400000000 (elements), O", "400000 (elements), O")], "does the file contain two logs"),
        ("mlc", [("       1\t 194.5\t 113.1\t\n", "")], "the table of 2 nodes has 1 rows"),
        ("mlc", [(" 194.5\t 113.1", " 194.5")], "row 1 of the table of 2 nodes has 1 numbers"),
        ("ib-write-bw", [("peak[MiB/sec]", "peak[Gb/sec]")], "another unit"),
        ("ib-write-bw", [("peak[MiB/sec]", "peak[Furlongs/sec]")], "unknown unit Furlongs/sec"),
        ("iperf3", [('"sum_received"', '"sum_lost"')], "no key `sum_received`"),
        ("iperf3", [("warning:", "iperf3: error - unable to connect to server: Connection refused")], "1:1: the run failed"),
        ("fio", [('"error": 0', '"error": 5')], r"the job ended with error 5"),
        ("fio", [("fio: file", "3;fio-3.36;")], "terse output"),
        ("vllm", [('"completed": 200', '"completed": 0')], "no request was completed"),
        ("vllm", [('"duration": 21.36', '"duration": 2136')], "does the file contain two results"),
        ("vllm", [("Meta-Llama-3-8B-Instruct", "Llama-9-8B")], "'meta-llama/Llama-9-8B' is not in the library"),
    ],
)
def test_a_trap_is_an_error_with_its_place(tool: str, swaps: list[tuple[str, str]], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        fitted(tool, changed(tool, *swaps), part=PARTS.get(tool, ""))


def test_logs_that_do_not_belong_together_are_refused() -> None:
    for tool, swap, words in (
        ("nccl-tests", ("all_reduce_perf", "all_gather_perf"), "all-gather of 8 ranks, but 0.txt is of all-reduce of 8 ranks"),
        ("vllm", ('"request_rate": 10.0', '"request_rate": "inf"'), "the rate differs: none, but 10.0 in 0.txt"),
        ("iperf3", ('"protocol": "TCP"', '"protocol": "UDP"'), "the logs are from both TCP and UDP"),
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


def test_udp_that_was_lost_is_not_counted() -> None:
    content = json.loads(text_of("iperf3").partition("\n")[2])
    content["start"]["test_start"]["protocol"] = "UDP"
    content["end"] = {"sum": {"bits_per_second": 20e9, "lost_percent": 10.0, "seconds": 10}}
    assert "18 Gb/s received" in fitted("iperf3", json.dumps(content)).content()["notes"]
