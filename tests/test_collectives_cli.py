"""`hwsim collectives`: the table of nccl-tests, its JSON and its figure, and what it says of mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hwsim import api
from hwsim.api import load_machine
from hwsim.communication import OPERATIONS
from hwsim.demand import CollectiveExchange
from hwsim.views.collectives.draw import ranked_lines
from hwsim.views.collectives.find import measure
from hwsim.views.kit.table import size_text
from tests.command import hwsim

H100 = "p5.48xlarge"
FOUR = "d2l-4gpu-pcie"


def test_a_table_says_what_is_chosen_at_every_size() -> None:
    found = hwsim("collectives", H100, "--bytes", "1MiB..2GiB")
    lines = found.stdout.splitlines()
    assert lines[0] == "all-reduce, 8 devices (gpu0 to gpu7), on p5.48xlarge"
    assert [line.split()[:2] for line in lines[4:16]] == [
        *([f"{1 << power}", "MiB"] for power in range(10)), ["1", "GiB"], ["2", "GiB"]
    ]  # fmt: skip
    assert lines[4].split()[5:8] == ["ring", "LL", "24"]
    assert lines[15].split()[5:10] == ["NVLS", "Simple", "16", "ring", "Simple"]


def test_json_has_every_number_with_nccl_tests_definitions() -> None:
    found = json.loads(hwsim("collectives", H100, "--op", "all-gather", "--bytes", "8MiB,64MiB", "--json").stdout)
    assert (found["hwsim"], found["library"], len(found["devices"])) == ("collectives/2", "nccl", 8)
    for row, size in zip(found["rows"], (8 << 20, 64 << 20), strict=True):
        assert row["bytes"] == size
        assert row["algbw"] == pytest.approx(size / row["time_s"])
        assert row["busbw"] == pytest.approx(row["algbw"] * 7 / 8)
        assert row["chosen"].startswith("ring")
        assert row["runner_up_s"] >= row["time_s"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_busbw_never_exceeds_what_a_rank_s_links_carry(operation: str) -> None:
    machine = load_machine(FOUR)
    rows = measure(machine, operation, machine.select("gpu*"), [160e6], ("all",)).rows  # type: ignore[arg-type]
    assert rows
    for row in rows:
        twice = 2 if row.algorithm in ("nvls", "sharp") else 1  # the switch adds, so that each byte crosses once
        assert row.busbw <= 16e9 * twice * (1 + 1e-9)
        assert row.busbw == pytest.approx(row.algbw * CollectiveExchange(operation, 1.0, 4).passed)


def test_all_algorithms_stand_side_by_side_and_those_that_cannot_are_named() -> None:
    found = hwsim("collectives", "dgx-a100", "--algorithm", "all", "--bytes", "1MiB,1GiB")
    assert "  pairwise is not available: " in found.stdout
    assert "  nvls is not available: the machine's NCCL has no NVLS constants" in found.stdout
    assert max(map(len, found.stdout.splitlines())) <= 100


@pytest.mark.parametrize(("machine", "measured"), [("dgx-a100", True), ("dgx-h100", True), ("p3.16xlarge", True), (FOUR, False)])
def test_no_star_compares_an_ideal_algorithm_with_a_measured_library(machine: str, measured: bool) -> None:
    found = hwsim("collectives", machine, "--algorithm", "auto,ring,ps-sharded", "--bytes", "256KiB..1GiB:x64")
    rows = json.loads(
        hwsim("collectives", machine, "--algorithm", "auto,ring,ps-sharded", "--bytes", "256KiB,1GiB", "--json").stdout
    )["rows"]
    assert {row["algorithm"] for row in rows if row["ideal"]} == ({"ps-sharded"} if measured else set())
    assert ("  ideal, without measured constants, so not compared: ps-sharded" in found.stdout) is measured
    sharded = [line.split()[-1] for line in found.stdout.splitlines()[6:8]]
    assert not (measured and any(cell.endswith("*") for cell in sharded))


def test_what_stands_in_the_table_is_what_a_run_takes() -> None:
    row = json.loads(hwsim("collectives", H100, "--bytes", "96MiB", "--json").stdout)["rows"][0]
    body = {"hwsim": "workload/1", "program": [{"allreduce": {"among": "gpu*", "bytes": "96 MiB"}}]}
    assert api.simulate(H100, body).timeline.makespan == pytest.approx(row["time_s"], abs=2e-15)


def test_devices_and_settings_can_be_said() -> None:
    two = json.loads(hwsim("collectives", H100, "--among", "gpu0..1", "--bytes", "1GiB", "--json").stdout)
    assert two["devices"] == ["gpu0", "gpu1"]
    plain = json.loads(
        hwsim("collectives", H100, "--bytes", "1GiB", "--set", "machine.collectives={start: 1 ms}", "--json").stdout
    )
    assert plain["library"] == "overheads"
    assert plain["rows"][0]["time_s"] > 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--op", "allreduce"), "unknown operation 'allreduce'; did you mean 'all-reduce'"),
        (("--algorithm", "rign"), "unknown algorithm 'rign'; did you mean 'ring'"),
        (("--algorithm", "parameter-server"), "algorithms of this kind: ps-cpu, ps-gpu0, ps-sharded"),
        (("--algorithm", "pairwise"), "pairwise does not support all-reduce"),
        (("--among", "gpu9"), "gpu9"),
        (("--among", "gpu0"), "fewer than two devices"),
        (("--bytes", "1s..2s"), "expected sizes, got"),
        (("--bytes", "large"), "large"),
        (("--bytes", "2MiB..1MiB"), "is above the upper limit"),
        (("--plot", "busbw.gif"), "must end in .png, .svg or .pdf, got 'busbw.gif'"),
        (("--op", "barrier", "--bytes", "0B", "--plot", "x.png"), "no bandwidth to draw"),
    ],
)
def test_mistakes_are_said_with_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    found = hwsim("collectives", FOUR, *arguments, code=2)
    assert message in found.stderr + found.stdout


def test_the_figure_is_written_and_always_the_same(tmp_path: Path) -> None:
    table = (H100, "--bytes", "1MiB..1GiB:x8", "--algorithm", "auto,ring,nvls")
    for name in ("a.png", "b.png"):
        hwsim("collectives", *table, "--plot", str(tmp_path / name))
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    hwsim("collectives", FOUR, "--bytes", "1MB", "--plot", str(tmp_path / "c.svg"))
    assert b"busbw" in (tmp_path / "c.svg").read_bytes()


def test_the_figure_names_its_best_line_and_what_it_does_not_draw(tmp_path: Path) -> None:
    hwsim("collectives", "p3.16xlarge", "--bytes", "1KiB,1GiB", "--algorithm", "all", "--plot", str(tmp_path / "all.svg"))
    drawn = re.sub(r"<[^>]*>", "", (tmp_path / "all.svg").read_text("utf-8"))
    assert "with auto (ring, simple)" in drawn
    assert "grey: ideal, without measured constants, so not comparable with the others" in drawn
    assert "not drawn (lower peak): recursive-doubling, direct" in " ".join(drawn.split())
    found = measure(load_machine("p3.16xlarge"), "all-reduce", [f"gpu{index}" for index in range(8)], [1024.0, 2.0**30], ("all",))
    sure, ideal = ranked_lines(found)
    assert sure[0][0] == "auto"
    assert "ring" in [names[0] for names in sure]
    assert {name for names in ideal for name in names} == {row.algorithm for row in found.rows if row.ideal}


def test_without_a_library_auto_says_which_latencies_it_has() -> None:
    table = ("collectives", FOUR, "--bytes", "1KiB", "--algorithm")
    assert "auto: with NCCL's latencies" in hwsim(*table, "auto").stdout
    assert "auto: with" not in hwsim(*table, "ring").stdout


def test_sizes_are_binary_where_they_are_whole() -> None:
    assert [size_text(size) for size in (1, 1023, 1024, 3 << 29, 1e6)] == ["1 B", "1.02 kB", "1 KiB", "1536 MiB", "1 MB"]
