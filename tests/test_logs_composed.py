"""Logs as people have them: several runs in one file, through launchers and terminals. The numbers stay the same."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.functions.files import check_tree
from hwsim.spec import SpecError, read_text
from hwsim_calibrate.logs import TOOLS, Log, LogOptions, Result, fit_logs, parts_of
from hwsim_calibrate.logs.knee import fit_knee
from hwsim_calibrate.logs.target_part import find_target_part
from tests.calibrate_logs import FOLDER, LOGS, MODELS, PARTS
from tests.command import hwsim

PREFIXES: Final = (  # of mpirun, srun -l, kubectl logs --prefix, MPICH, torchrun, journalctl, pdsh, docker; one inside of another
    "[prterun-node1-77@1,0]<stdout>: ", "[default0]:", "Aug 01 10:00:00 node1 bench[77]: ", "[2026-08-01 10:00:00] ", "    ",
    "", "[1,0]<stdout>:", "[1,0]<stdout>: ", " 0: ", "0: ", "[pod/bench-x7/main] ", "[0] ", "node-01: ", "bench-1  | ",
    "2026-08-01T10:00:00.123456789Z ", "[pod/bench-x7/main] 2026-08-01T10:00:00Z 3: ",
)  # fmt: skip
CURVES: Final = {  # title, columns, whether a rate, curve
    "MPI Latency": ("Latency (us)", False, "send"), "MPI Bandwidth": ("Bandwidth (MB/s)", True, "stream"),
    "MPI Bi-Directional Bandwidth": ("Bandwidth (MB/s)", True, "stream-both"),
    "MPI Broadcast Latency": ("Avg Latency(us)", False, "broadcast"),
    "MPI Allreduce Latency": ("Avg Latency(us)", False, "all-reduce"),
    "MPI All-to-All Personalized Exchange Latency": ("Avg Latency(us)", False, "all-to-all"),
    "MPI Reduce_scatter Latency": ("Avg Latency(us)", False, "reduce-scatter"),
    "MPI Multiple Bandwidth / Message Rate": ("MB/s", True, ""), "MPI Multi Latency": ("Latency (us)", False, ""),
    "MPI_Put Latency": ("Latency (us)", False, ""), "MPI Non-blocking Allreduce Latency": ("Overall(us)", False, ""),
    "NCCL Allreduce Latency": ("Avg Latency(us)", False, ""),
}  # fmt: skip
COLLECTIVES: Final = {"all_reduce": "all-reduce", "alltoall": "all-to-all", "all_gather": "all-gather", "sendrecv": "send"}


def fitted(tool: str, text: str, *, model: str = "", name: str = "a") -> Result:
    return fit_logs(tool, [Log(name, text)], LogOptions(None, 0, model or MODELS.get(tool, "")))


def osu(title: str, start: float, rate: float) -> str:
    column, is_rate, _ = CURVES[title]
    lines = [f"# OSU {title} Test v7.3", "# Datatype: MPI_CHAR.", f"# Size          {column}"]
    for size in (2**power for power in range(21)):
        seconds = start + size / rate
        lines.append(f"{size:<12d}{size / seconds / 1e6 if is_rate else seconds * 1e6:18.2f}")
    return "\n".join([*lines, ""])


def nccl(program: str, ranks: int, start: float) -> str:
    lines = [
        f"# Collective test starting: {program}_perf{'_mpi' * (ranks > 2)}",
        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 33554432 graph: 0",
    ]
    lines += [
        f"#  Rank {index:2d} Group  0 Pid {1000 + index} on node0 device {index:2d} [0000:1b:00] GPU" for index in range(ranks)
    ]
    lines += [
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
    ]
    for size in (1024 << power for power in range(16)):
        time = start + size / 100e9
        half = f"{time * 1e6:8.2f} {size / time * 1e-9:7.2f} {size / time * 1e-9:7.2f}"
        lines.append(f"{size:12d} {size // 4:12d}     float     sum      -1 {half}      0 {half}    N/A")
    return "\n".join(
        [
            *lines,
            "# Out of bounds values : 0 OK",
            "# Avg bus bandwidth    : 47.8",
            f"# Collective test concluded: {program}_perf",
            "",
        ]
    )


@st.composite
def dressed(draw: st.DrawFn, text: str) -> str:
    """The same lines through a launcher, in colours, from another system, with lines of others around them."""
    prefix = draw(st.sampled_from(PREFIXES))
    before = draw(st.sampled_from(["", "srun: job 12 queued\n", "\x1b[1mloading modules\x1b[0m\n\n", "WARNING: no fabric\n"]))
    unseen = draw(st.sampled_from(["\x1b[32m", "\x1b(B\x1b[m", "\u202e", "\u200b", "\x07", "\x9b31m"]))
    lines = [prefix + (f"{unseen}{line}\x1b[0m" if line and draw(st.integers(0, 20)) == 0 else line) for line in text.split("\n")]
    if prefix.startswith("[1,0]<stdout>") and draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), "[1,3]<stderr>:node1:77:99 [3] NCCL INFO Using network IB")
    joined = ("" if prefix in ("node-01: ", "bench-1  | ", "    ") else before) + "\n".join(lines)
    return joined.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@pytest.mark.parametrize("tool", LOGS)
def test_a_log_says_the_same_however_it_was_taken(tool: str) -> None:
    text = (FOLDER / LOGS[tool]).read_text()
    plain = fitted(tool, text).to_json()

    @settings(max_examples=12)
    @given(dressed(text))
    def check(changed: str) -> None:
        assert fitted(tool, changed).to_json() == plain

    check()


@settings(max_examples=40)
@given(st.lists(st.sampled_from(sorted(CURVES)), min_size=1, max_size=5, unique=True), st.data())
def test_every_operation_of_osu_is_the_one_of_its_title(titles: list[str], data: st.DataObject) -> None:
    starts = {title: (1 + index) * 1e-6 for index, title in enumerate(titles)}
    text = data.draw(dressed("\n".join(osu(title, starts[title], 12e9) for title in titles)))
    known = {CURVES[title][2]: starts[title] for title in titles if CURVES[title][2]}
    if not known:
        with pytest.raises(SpecError, match="hwsim has no curve for this operation"):
            fitted("osu", text)
        return
    result = fitted("osu", text)
    check_tree(read_text(result.yaml()))
    assert set(result.content()["curves"]) == set(known)
    for name, start in known.items():
        assert result.numbers()[f"curves.{name}.start"].value == pytest.approx(start, rel=0.05)
    assert len(result.left) == len(titles) - len(known)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(sorted(COLLECTIVES)), min_size=1, max_size=4), st.data())
def test_each_collective_of_a_log_is_a_part_as_if_it_were_alone(programs: list[str], data: st.DataObject) -> None:
    starts = {program: (1 + index) * 20e-6 for index, program in enumerate(sorted(COLLECTIVES))}
    text = data.draw(dressed("".join(nccl(program, 8, starts[program]) for program in programs)))
    found = parts_of("nccl-tests", [Log("a", text)], LogOptions())
    names = [COLLECTIVES[program] for program in dict.fromkeys(programs)]
    assert list(found) == (names if len(names) > 1 else [""])
    for program, name, part in zip(dict.fromkeys(programs), names, found.values(), strict=True):
        several = "".join([nccl(program, 8, starts[program])] * programs.count(program))
        alone = fitted("nccl-tests", several)
        assert part.content()["start"] == alone.content()["start"]
        assert f"{name} of 8 ranks" in part.content()["notes"]
        chosen = fit_logs("nccl-tests", [Log("a", text)], LogOptions(collective=name))
        assert chosen.yaml() == part.yaml()


def test_tests_without_a_title_are_named_by_the_user() -> None:
    one, other = ("\n".join(nccl(program, 8, 20e-6).split("\n")[1:-2]) + "\n" for program in ("all_reduce", "alltoall"))
    assert "a collective of 8 ranks" in fitted("nccl-tests", one).content()["notes"]
    with pytest.raises(SpecError, match="the collective of one of several tests is unknown") as error:
        fitted("nccl-tests", one + other)
    assert "--collective" in str(error.value)
    named = fit_logs("nccl-tests", [Log("a", one + other)], LogOptions(collective="all-reduce"))
    assert "all-reduce of 8 ranks" in named.content()["notes"]
    for text, name in ((one, "allreduce"), (nccl("alltoall", 8, 20e-6), "all-reduce")):
        with pytest.raises(SpecError, match=f"the log has no {name}"):
            fit_logs("nccl-tests", [Log("a", text)], LogOptions(collective=name))


def test_parts_of_one_log_are_files_beside_each_other(tmp_path: Path) -> None:
    log, output = tmp_path / "log", tmp_path / "part.yaml"
    log.write_text(nccl("all_reduce", 8, 20e-6) + nccl("alltoall", 8, 40e-6))
    hwsim("import", "nccl-tests", log, "-o", output)
    for name in ("all-reduce", "all-to-all"):
        hwsim("check", tmp_path / f"part-{name}.yaml")
    assert not output.exists()
    assert hwsim("import", "nccl-tests", log).output.count("---\nhwsim: part/1") == 2
    asked = hwsim("import", "nccl-tests", log, "--json", code=2)
    assert "--collective all-reduce or all-to-all" in asked.output


def fio(name: str, mode: str, size: str, depth: int, iops: float, latency: float, **options: str) -> dict[str, Any]:
    size_b = float(size[:-1]) * {"k": 1024, "m": 2**20}[size[-1]]
    share = float(options.get("rwmixread", 0 if mode.endswith("write") else 100)) / 100
    sides = {
        way: {
            "io_bytes": int(part * 1e10),
            "bw_bytes": part * iops * size_b,
            "iops": part * iops,
            "lat_ns": {"mean": latency * 1e9},
        }
        for way, part in (("read", share), ("write", 1 - share))
    }
    said = {"rw": mode, "bs": size, "iodepth": str(depth), "direct": "1", "ioengine": "libaio", "stonewall": "", **options}
    return {"jobname": name, "error": 0, "job options": said, **sides}


JOBS: Final = {
    "read": fio("seq", "read", "1m", 8, 3000, 8 / 3000), "write": fio("seqw", "write", "1m", 8, 2000, 8 / 2000),
    "latency": fio("one", "randread", "4k", 1, 9000, 110e-6), "write_latency": fio("onew", "randwrite", "4k", 1, 50000, 20e-6),
    "iops": fio("deep", "randread", "4k", 32, 160000, 200e-6), "write_iops": fio("deepw", "randwrite", "4k", 32, 80000, 400e-6),
}  # fmt: skip
NOTHING: Final = {  # runs that say nothing of a disk, and why
    "throttled by fsync": fio("synced", "randwrite", "4k", 32, 900, 32 / 900, fsync="1", sync="none"),
    "throttled by rate": fio("rated", "read", "1m", 8, 100, 80e-3, rate="100m"),
    "page cache": fio("cached", "read", "1m", 8, 9000, 8 / 9000, direct="0"),
    "IOPS of mixed reads and writes": fio("mixed", "rw", "1m", 8, 4000, 2e-3, rwmixread="70"),
    "suitable for neither bandwidth nor IOPS": fio("some", "read", "4k", 4, 9000, 444e-6),
    "the disk is not saturated": fio("unsaturated", "randread", "4k", 4, 36000, 111e-6),
}


@settings(max_examples=60)
@given(
    st.sets(st.sampled_from(sorted(JOBS)), min_size=1),
    st.sets(st.sampled_from(sorted(NOTHING))),
    st.randoms(use_true_random=False),
)
def test_a_disk_has_the_numbers_that_were_measured_and_no_other(measured: set[str], more: set[str], dice: Any) -> None:
    more -= {"the disk is not saturated"} if "latency" not in measured else set()
    jobs = [JOBS[key] for key in sorted(measured)] + [NOTHING[key] for key in sorted(more)]
    dice.shuffle(jobs)
    text = json.dumps({"fio version": "fio-3.36", "jobs": jobs})
    if "read" not in measured:
        with pytest.raises(SpecError, match="measures the read bandwidth"):
            fitted("fio", text)
        return
    result = fitted("fio", text)
    expected = measured - (set() if "iops" in measured else {"write_iops"})
    assert set(result.numbers()) == expected
    writing = (2000 if "write" in measured else 3000) * 2**20
    values = {"read": 3000 * 2**20, "write": 2000 * 2**20, "latency": 110e-6 - 4096 / (3000 * 2**20), "iops": 160000.0,
              "write_latency": 20e-6 - 4096 / writing, "write_iops": 80000.0}  # fmt: skip
    for key in expected:
        assert result.numbers()[key].value == pytest.approx(values[key], rel=1e-6)
    for why in more:
        assert any(why in note for note in result.left)


def together(job: dict[str, Any]) -> dict[str, Any]:
    """The job as a section without `stonewall`: it runs while those before it do."""
    return {**job, "job options": {key: value for key, value in job["job options"].items() if key != "stonewall"}}


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["read", "write", "iops", "write_iops"]), min_size=2, max_size=4, unique=True), st.data())
def test_jobs_that_share_the_disk_are_no_runs_alone(names: list[str], data: st.DataObject) -> None:
    """fio runs the sections of a job file at the same time, unless `stonewall` says otherwise."""
    walls = data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    jobs = [JOBS[name] if wall else together(JOBS[name]) for name, wall in zip(names, walls, strict=True)]
    groups: list[list[str]] = []
    for index, (name, wall) in enumerate(zip(names, walls, strict=True)):
        if index == 0 or wall:
            groups.append([])
        groups[-1].append(name)
    alone = {group[0] for group in groups if len(group) == 1}
    text = json.dumps({"jobs": jobs})
    if "read" not in alone:
        with pytest.raises(SpecError, match="measures the read bandwidth") as error:
            fitted("fio", text)
        assert ("stonewall" in str(error.value)) == any(len(group) > 1 for group in groups)
        return
    result = fitted("fio", text)
    assert set(result.numbers()) == alone - (set() if "iops" in alone else {"write_iops"})
    for group in groups:
        assert len(group) == 1 or any("at the same time" in note and "`stonewall`" in note for note in result.left)


@pytest.mark.parametrize("processes", [2, 4, 16])
def test_processes_of_a_job_are_one_load_however_they_are_reported(processes: int) -> None:
    whole = fio("deep", "randread", "4k", 8, 160000, 8 * processes / 160000, numjobs=str(processes), group_reporting="")
    each = fio("deep", "randread", "4k", 8, 160000 / processes, 8 * processes / 160000, numjobs=str(processes))
    sections = [{**together(each), "jobname": f"deep{index}"} for index in range(processes)]
    sections[0]["job options"] |= {"stonewall": ""}
    for jobs in ([each] * processes, sections):
        one, other = (fitted("fio", json.dumps({"jobs": [JOBS["read"], *several]})) for several in ([whole], jobs))
        assert other.content()["queue"] == 8 * processes == one.content()["queue"]
        assert other.numbers()["iops"].value == pytest.approx(one.numbers()["iops"].value)
    part = [{**each, "groupid": 1, "read": {**each["read"], "runtime": 10000 + 60000 * number}} for number in range(2)]
    assert any("different blocks or run times" in why for why in fitted("fio", json.dumps({"jobs": [JOBS["read"], *part]})).left)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (fio("a", "randread", "4k", 8, 9000, 8 / 9000, filename="/dev/sdb"), "one log per disk"),
        (fio("a", "randread", "4k", 8, 9000, 8 / 9000, filename="/dev/sda:/dev/sdb"), "one log per disk"),
        (
            fio("seq", "read", "4k", 8, 3000, 8 / 3000) | {"read": JOBS["read"]["read"]},
            "merges it with jobs other than read of 4k",
        ),
        (fio("seq", "read", "1m", 8, 3000, 8 / 3000, rwmixread="50"), "merges it with jobs other than read of 1m"),
        ({**JOBS["read"], "hostname": "b"}, "ran on several hosts: a and b"),
    ],
)
def test_numbers_of_several_disks_or_jobs_are_no_disk_s(job: dict[str, Any], words: str) -> None:
    first = fio("one", "randread", "4k", 1, 9000, 110e-6, filename="/dev/sda") | {"hostname": "a" if "hostname" in job else ""}
    with pytest.raises(SpecError, match=words):
        fitted("fio", json.dumps({"jobs": [first, job]}))


def test_processes_of_fio_that_ran_at_once_are_no_runs_alone() -> None:
    first = {"timestamp_ms": 1783516072430, "jobs": [JOBS["read"] | {"elapsed": 22}]}
    for later, refused in ((1, True), (15, True), (30, False)):
        second = {"timestamp_ms": 1783516072430 + 1000 * later, "jobs": [JOBS["latency"] | {"elapsed": 22}]}
        logs = [Log("a", json.dumps(first)), Log("b", json.dumps(second))]
        if refused:
            with pytest.raises(SpecError, match="b: the jobs ran at the same time as the jobs of a"):
                fit_logs("fio", logs, LogOptions())
        else:
            assert set(fit_logs("fio", logs, LogOptions()).numbers()) == {"read", "latency"}


def test_shares_of_a_mix_are_no_capability() -> None:
    jobs = [JOBS["read"], fio("m", "randrw", "4k", 32, 100000, 317e-6, rwmixread="70")]
    result = fitted("fio", json.dumps({"jobs": jobs}))
    assert set(result.numbers()) == {"read", "iops"}
    assert result.numbers()["iops"].value == pytest.approx(100000)
    assert "70 % reads" in result.numbers()["iops"].note


def test_synchronous_engines_ignore_the_depth() -> None:
    one = fio("one", "randread", "4k", 32, 9000, 110e-6, ioengine="psync")
    result = fitted("fio", json.dumps({"jobs": [JOBS["read"], one]}))
    assert result.numbers()["latency"].value == pytest.approx(108.7e-6, rel=1e-3)
    assert "iops" not in result.numbers()


@pytest.mark.parametrize(("tool", "swap"), [("stream", ("166512.3", "166512,3")), ("osu", ("1.50", "1,50"))])
def test_numbers_of_another_locale_are_refused(tool: str, swap: tuple[str, str]) -> None:
    text = (FOLDER / LOGS[tool]).read_text() if tool == "stream" else osu("MPI Latency", 1.5e-6, 12e9)
    assert swap[0] in text
    with pytest.raises(SpecError, match="decimal commas"):
        fitted(tool, text.replace(*swap, 1))


def test_ranks_that_measure_at_once_are_refused() -> None:
    lines = (FOLDER / LOGS["stream"]).read_text().split("\n")
    text = "\n".join(f"{rank}: {line}" for line in lines for rank in (0, 1))
    with pytest.raises(SpecError, match="both '1:' and '0:' print results"):
        fitted("stream", text)


def test_a_fit_that_is_far_off_is_refused_with_its_residuals() -> None:
    text = osu("MPI Latency", 1e-6, 12e9) + osu("MPI Latency", 90e-6, 1e9)
    with pytest.raises(SpecError, match=r"the fit has a median error of \d+ % over 42 rows") as error:
        fitted("osu", text)
    assert "measured" in str(error.value)
    noisy = osu("MPI Latency", 1e-6, 12e9) + osu("MPI Latency", 1.1e-6, 11e9)
    assert fitted("osu", noisy).numbers()["curves.send.bandwidth"].spread > 0.04


def test_nodes_of_a_socket_are_no_sockets() -> None:
    """Two sockets of two nodes each: a node near to another is of its socket."""
    table = [[118.0 if index == to else 125.0 if index // 2 == to // 2 else 195.0 for to in range(4)] for index in range(4)]
    lines = ["Measuring idle latencies for random access (in ns)...", "Numa node     0     1     2     3"]
    lines += [f"       {node} " + " ".join(map(str, row)) for node, row in enumerate(table)]
    text = "\n".join([*lines, "", "Measuring Peak Injection Memory Bandwidths for the system", "ALL Reads        : 469542.5", ""])
    result = fitted("mlc", text)
    assert result.numbers()["bandwidth"].value == pytest.approx(469.5425e9 / 2)
    assert any("--sockets" in note for note in result.left)
    with pytest.raises(SpecError, match="--sockets 2"):
        fitted(
            "mlc",
            text[text.index("Measuring Peak") :]
            + "Measuring Memory Bandwidths between nodes within system\n"
            + "\n".join(lines[1:]),
        )


def test_runs_at_a_limit_measure_no_link() -> None:
    content = json.loads((FOLDER / "iperf3.json").read_text().partition("\n")[2])
    content["start"]["test_start"] |= {"target_bitrate": 24_310_000_000 / 4, "num_streams": 4}
    with pytest.raises(SpecError, match="throttled to"):
        fitted("iperf3", json.dumps(content))
    content["start"]["test_start"]["target_bitrate"] *= 2
    assert fitted("iperf3", json.dumps(content)).numbers()


def test_the_table_of_sglang_is_read() -> None:
    text = """============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    2.0
Max request concurrency:                 not set
Successful requests:                     996
Benchmark duration (s):                  498.25
Total input tokens:                      342460
Total generated tokens:                  218257
Total generated tokens (retokenized):    103837
Request throughput (req/s):              2.00
Output token throughput (tok/s):         438.05
Mean E2E Latency (ms):                   2098.07
Mean TTFT (ms):                          74.09
"""
    content = fitted("vllm", text, model="qwen3-8b").content()
    assert content["infer"]["framework"] == "sglang"
    assert content["infer"]["arrivals"] == {"poisson": "2 1/s"}
    assert set(content["expect"]) == {"requests_per_s", "tokens_per_s", "ttft_mean", "latency_mean"}


@settings(max_examples=60)
@given(st.sampled_from(["osu", "mlc", "stream", "nccl-tests", "ib-write-bw", "sysbench"]), st.floats(0.05, 0.999))
def test_a_log_that_is_cut_off_says_no_other_number(tool: str, share: float) -> None:
    """What a log says up to any character of it: its own numbers, ranges that hold them, or nothing."""
    part = LogOptions(find_target_part(PARTS[tool], TOOLS[tool].part_kinds, Path()) if tool in PARTS else None)
    text = (FOLDER / LOGS[tool]).read_text()
    whole = fit_logs(tool, [Log("a", text)], part).numbers()
    try:
        cut = fit_logs(tool, [Log("a", text[: int(len(text) * share)])], part).numbers()
    except SpecError:
        return
    for key in (name for name in cut if not name.endswith("knee")):  # beyond the largest size there may be another
        spread = math.hypot(cut[key].spread, whole[key].spread)
        assert abs(math.log(cut[key].value / whole[key].value)) <= 3.0 * spread + 0.05, key


@pytest.mark.parametrize("largest", [13, 14, 16])
def test_a_rate_beyond_all_sizes_is_unsure(largest: int) -> None:
    """Of messages of up to 64 KiB a rate of 50 GB/s without a knee, or of 100 GB/s with one beyond them, is the same line."""
    points = [(8.0 * 2**power, round(10e-6 + 8.0 * 2**power / 50e9, 8)) for power in range(largest)]
    curve = fit_knee(points)
    assert abs(math.log(curve.rate / 50e9)) <= 2.0 * math.hypot(curve.sigma["rate"], 0.03)


def test_a_knee_is_told_from_a_straight_line() -> None:
    points = [(size, 10e-6 + (size - 1e6 * math.expm1(-size / 1e6)) / 50e9) for size in (8.0 * 2**power for power in range(29))]
    found = fit_knee(points)
    assert found.start == pytest.approx(10e-6, rel=0.05)
    assert found.rate == pytest.approx(50e9, rel=0.05)
    assert found.knee == pytest.approx(1e6, rel=0.2)
    assert found.seconds(1e6) == pytest.approx(dict(points).get(1e6, 10e-6 + 1.632e6 / 50e9), rel=0.03)
