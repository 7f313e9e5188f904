"""What `hwsim import` writes is what it prints; files that are there and are not its own stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwsim.api import simulate
from hwsim.importers.saved import steps_in
from hwsim.spec import SpecError
from hwsim.spec.library import library_root
from tests.command import hwsim

PROFILE = library_root() / "workloads/profiles/mlp"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--step", "1"],
        ["--mode", "exact"],
        ["--gpu-times", "gemm=0.5", "--gpu-times", "1.5"],
        ["--step", "2", "--gpu-times", "0.5"],
        ["--machine", "dgx-h100"],
        ["--machine", "dgx-h100", "--ranks", "4"],
        ["--machine", "dgx-h100", "--ranks", "8", "--step", "1"],
    ],
    ids=" ".join,
)
def test_a_written_step_takes_as_long_as_the_printed_run(tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "step.npz"
    result = hwsim("import", "kineto", PROFILE, *options, "-o", path, "--json")
    said = json.loads(result.stdout)
    if "predicted" in said:
        wanted = said["predicted"]["makespan_s"]
    else:
        wanted = said["replay"]["gpu_times"][0]["run_s"] if "--gpu-times" in options else said["replay"]["replayed_s"]
    assert simulate("dgx-a100", path).makespan_s == pytest.approx(wanted, rel=1e-9)
    hwsim("import", "kineto", PROFILE, "--step", "0", "-o", path)  # its own file is written over


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nosuch=0.5"], "no GPU op has 'nosuch' in its name; the 12 names are such as"),
        (["relo=0.5"], "did you mean 'relu'?"),
        (["GEMM=0.5"], "capitals count"),
        (["gemm=0.5", "gemm=2"], "expected one factor for 'gemm', got two"),
        (["0.5", "--machine", "dgx-h100"], "use one of the two"),
    ],
)
def test_factors_that_mean_nothing_are_refused(options: list[str], message: str) -> None:
    first, *others = options
    more = [argument for option in others for argument in ([option] if "=" not in option else ["--gpu-times", option])]
    result = hwsim("import", "kineto", PROFILE, "--gpu-times", first, *more, code=2)
    assert message in result.stderr


@pytest.mark.parametrize("content", [b"hwsim: workload/1\nname: by hand\n", b"PK\x03\x04 cut off"])
def test_a_file_of_somebody_else_stays(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(content)
    result = hwsim("import", "kineto", PROFILE, "-o", path, code=2)
    assert "exists and is not a step of hwsim import" in result.stderr
    assert path.read_bytes() == content
    with pytest.raises(SpecError, match="this is not an import"):
        steps_in(path)


def test_a_folder_is_its_files_and_what_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    files = sorted(PROFILE.glob("*.json.gz"))
    folder, named = (hwsim("import", "kineto", *paths).stdout.partition("next:")[0] for paths in ([PROFILE], files))
    assert folder == named
    assert "no file in the folder" in hwsim("import", "chakra", PROFILE, code=2).stderr
    hwsim("import", "kineto", tmp_path / "nosuch.json", code=2)


def test_the_time_before_the_first_event_is_no_what_if(tmp_path: Path) -> None:
    path = tmp_path / "step.npz"
    hwsim("import", "kineto", PROFILE, "--step", "1", "-o", path)
    changes = [row["change"] for row in json.loads(hwsim("explain", "dgx-a100", path, "--json").stdout)["what_if"]]
    assert changes
    assert not [change for change in changes if change.startswith("start")]


def test_an_export_writes_over_no_profile(tmp_path: Path) -> None:
    for file in PROFILE.glob("*.json.gz"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    refused = hwsim("export", "kineto", "d2l-gpu-workstation", "d2l/data-loading", "-o", tmp_path, code=2)
    assert "is not empty" in refused.stderr


@pytest.mark.parametrize("command", [["sweep", "--vary", "machine.gpu.count=1,2"], ["sensitivity"]])
@pytest.mark.parametrize("start", ["", "./"])
def test_an_op_graph_where_a_workload_is_wanted_is_said(command: list[str], start: str) -> None:
    refused = hwsim(command[0], "dgx-a100", f"{start}step.npz", *command[1:], code=2)
    assert "is an op graph, whose numbers are fixed" in refused.output
    assert "hwsim simulate, explain, compare and export accept op graphs" in refused.output
