"""The command line, as people and scripts meet it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hwsim import simulate
from hwsim.cli import COMMANDS
from hwsim.views import VIEWS
from tests.command import hwsim

WORKLOAD = """\
hwsim: workload/1
name: two copies
let: {size: 160 MB}
program:
  - copy: {name: one, from: cpu, to: gpu0, bytes: $size}
  - copy: {name: two, from: cpu, to: gpu1, bytes: $size}
  - wait: all
expect: {machine: d2l-4gpu-pcie, makespan: 20 ms +- 1 %}
"""
MACHINE = "d2l-4gpu-pcie"


def process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hwsim", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False, **options)


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "copies.yaml"
    path.write_text(WORKLOAD, encoding="utf-8")
    return path


# ---- simulate


def test_simulate_prints_the_time_and_what_limits_it(workload: Path) -> None:
    done = hwsim("simulate", MACHINE, workload)
    assert done.stdout.splitlines()[0] == "two copies, on 4-GPU PCIe server"
    assert "20.0 ms" in done.stdout
    assert "link uplink cpu->psw: 99.9 % of the time" in done.stdout
    assert "makespan 20 ms ± 1 %: met" in done.stdout
    assert done.stderr == ""


def test_one_of_the_two_files_may_be_standard_input() -> None:
    assert "20.0 ms" in hwsim("simulate", MACHINE, "-", stdin=WORKLOAD).stdout
    both = hwsim("simulate", "-", "-", stdin=WORKLOAD, code=2)
    assert "only one of the two" in both.stderr


def test_json_is_all_that_goes_to_standard_output(workload: Path) -> None:
    done = hwsim("simulate", MACHINE, workload, "--json")
    found = json.loads(done.stdout)
    assert found["makespan_s"] == 0.020005  # 5 us to begin
    assert found["limited_by"][0]["cause"] == "uplink:cpu->psw"
    assert "ops" not in found
    assert len(json.loads(hwsim("simulate", MACHINE, workload, "--json", "--ops").stdout)["ops"]) == found["op_count"]
    hwsim("simulate", MACHINE, workload, "--ops", code=2)


def test_set_changes_a_value_and_skips_what_the_workload_expects(workload: Path) -> None:
    done = hwsim("simulate", MACHINE, workload, "--set", "size=80 MB", "--set", "machine.links.uplink.bandwidth=8 GB/s", "-v")
    assert "20.0 ms" in done.stdout
    assert "not checked (the run was changed with --set)" in done.stdout
    assert json.loads(hwsim("simulate", MACHINE, workload, "--set", "size=80 MB", "--json").stdout)["set"] == {"size": "80 MB"}


def test_a_violated_expectation_is_exit_3_after_the_summary(workload: Path) -> None:
    done = hwsim("simulate", MACHINE, workload, "--set", "size=80 MB", "--expect", code=3)
    assert "10.0 ms" in done.stdout
    assert done.stderr == "expected makespan 20 ms +- 1 %: it is 10.01 ms\n"
    hwsim("simulate", MACHINE, workload, "--set", "size=80 MB", "--no-expect")


def test_an_expectation_of_another_machine_is_skipped(workload: Path) -> None:
    workload.write_text(WORKLOAD.replace("machine: d2l-4gpu-pcie", "machine: p3.16xlarge").replace("20 ms", "1 ms"))
    done = hwsim("simulate", MACHINE, workload, "-v")
    assert "not checked (it is for p3.16xlarge)" in done.stdout


def test_mistakes_of_both_files_are_said_at_once_with_exit_2(tmp_path: Path) -> None:
    machine, workload = tmp_path / "machine.yaml", tmp_path / "workload.yaml"
    machine.write_text("hwsim: machine/1\nparts:\n  gpu: {kind: gpux}\n")
    workload.write_text("hwsim: workload/1\nprogrm: []\nexpect: {makespan: 3 GB +- 1 %}\n")
    done = hwsim("simulate", machine, workload, code=2)
    assert done.stdout == ""
    assert f"{machine}:3:" in done.stderr
    assert "did you mean 'gpu'" in done.stderr
    assert f"{workload}:2:1: " in done.stderr
    assert "did you mean 'program'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simulate", "d2l-4gpu-pci", "d2l/async-loop"], "did you mean 'd2l-4gpu-pcie'"),
        (["simulate", MACHINE, "nowhere.yaml"], "nowhere.yaml"),
        (["simulate", MACHINE, "d2l/async-loop", "--set", "n"], "PATH=VALUE"),
        (["simulate", MACHINE, "d2l/async-loop", "--set", "m=3"], "no parameter 'm'"),
        (["simulate", MACHINE, "d2l/async-loop", "--plot", "gantt", "x.bmp"], ".png, .svg or .pdf"),
        (["simulate", MACHINE, "d2l/async-loop", "--trace", "no-such-folder/x.json"], "no-such-folder"),
        (["simulat"], "Did you mean 'simulate'?"),
        (["show", "v100-sxm2-16"], "v100-sxm2-16gb"),
        (["show", "d2l-laptop", "--set", "machine.cpu.cores=6"], "--topology"),
        (["schema", "plain"], "machine"),
    ],
)
def test_mistakes_in_arguments_are_exit_2_and_say_what_to_do(arguments: list[str], said: str) -> None:
    done = hwsim(*arguments, code=2)
    assert said in done.stderr


def test_files_are_written_beside_the_summary(workload: Path, tmp_path: Path) -> None:
    trace, figure = tmp_path / "run.json", tmp_path / "run.svg"
    done = hwsim("simulate", MACHINE, workload, "--trace", trace, "--plot", "gantt", figure)
    assert done.stderr.splitlines() == [f"wrote {trace}", f"wrote {figure}"]
    copies = [event for event in json.loads(trace.read_bytes())["traceEvents"] if event.get("cat") == "gpu_memcpy"]
    assert {event["args"]["name"] for event in copies} == {"one", "two"}
    assert b"<svg" in figure.read_bytes()


def test_quiet_says_nothing(workload: Path, tmp_path: Path) -> None:
    assert hwsim("simulate", MACHINE, workload, "-q", "--trace", tmp_path / "t.json.gz").output == ""


def test_a_file_that_cannot_be_written_is_exit_1(workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim.views.kit import file_output

    def full(path: Path, chunks: object) -> Path:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(file_output, "write", full)
    done = hwsim("simulate", MACHINE, workload, "--trace", tmp_path / "t.json", code=1)
    assert "No space left on device" in done.stderr


def test_a_run_that_cannot_finish_is_exit_1(workload: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim import api
    from hwsim.engine import Deadlock

    def stuck(*_: object, **__: object) -> None:
        raise Deadlock("ops wait for each other in a circle: a -> b -> a")

    monkeypatch.setattr(api, "simulate", stuck)
    done = hwsim("simulate", MACHINE, workload, code=1)
    assert done.stderr == "the run cannot finish: ops wait for each other in a circle: a -> b -> a\n"


def test_an_interrupt_is_exit_130(workload: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim import api

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "simulate", interrupted)
    assert hwsim("simulate", MACHINE, workload, code=130).stderr == "interrupted\n"


def test_progress_is_shown_after_a_second_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim.cli import progress

    shown: list[tuple[int, int]] = []

    class Bar:
        task_ids = (0,)

        def __init__(self, what: str) -> None:
            assert what == "ops"

        def start(self) -> None: ...
        def stop(self) -> None: ...
        def update(self, task: int, *, completed: int, total: int) -> None:
            shown.append((completed, total))

    monkeypatch.setattr(progress, "_bar", Bar)
    with progress.progress(shown=False) as report:
        assert report is None
    with progress.progress(shown=True) as report:
        assert report is not None
        report(1, 10)
    assert shown == []
    monkeypatch.setattr(progress, "AFTER", 0.0)
    with progress.progress(shown=True) as report:
        assert report is not None
        report(5, 10)
    assert shown == [(5, 10)]


# ---- the other commands


def test_check_says_all_mistakes_of_all_files(workload: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("hwsim: workload/1\nprogrm: []\n")
    done = hwsim("check", workload, bad, MACHINE, "v100-sxm2-16gb", "ndr400", code=2)
    assert f"{workload}: valid" in done.stdout
    assert "ndr400: valid" in done.stdout
    assert f"{bad}:2:1: " in done.stderr
    hwsim("check", workload)


@pytest.mark.parametrize("name", ["d2l-4gpu-pcie", "d2l/async-loop", "h100-sxm"])
def test_what_show_prints_is_yaml_with_the_same_meaning(name: str) -> None:
    import yaml

    from hwsim.spec import read_text

    text = hwsim("show", name).stdout
    assert read_text(text).plain() == yaml.safe_load(text)


def test_show_keeps_the_parameters_where_a_workload_has_them() -> None:
    shown = hwsim("show", "d2l/measure-cache-size").stdout
    assert "working_set: $set" in shown
    assert "no-effect" not in hwsim("check", "-", stdin=shown).output  # no parameter that nothing mentions


@pytest.mark.parametrize(
    "arguments",
    [
        ["latency", "desktop"],
        ["collectives", "d2l-4gpu-pcie", "--bytes", "1 MB"],
        ["roofline", "desktop"],
        ["show", "desktop", "--topology"],
    ],
)
def test_every_view_says_what_was_set(arguments: list[str]) -> None:
    setting = "machine.cpu.cores=6"
    assert f"\n  set {setting}\n" in hwsim(*arguments, "--set", setting).stdout
    assert "\n  set " not in hwsim(*arguments).stdout


def test_the_starter_pair_is_valid_and_runs(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    made = hwsim("new", folder)
    assert made.stdout.splitlines()[-1].startswith("try: hwsim simulate")
    hwsim("check", folder / "machine.yaml", folder / "workload.yaml")
    done = hwsim("simulate", folder / "machine.yaml", folder / "workload.yaml", "--set", "batch=128")
    assert "gpu* compute (2)" in done.stdout
    again = hwsim("new", folder, code=2)
    assert "exists already" in again.stderr


@pytest.mark.parametrize(("template", "requests"), [("service", 4000), ("served-model", 100)])
def test_the_starter_pair_of_a_service_holds_what_it_expects(template: str, requests: int, tmp_path: Path) -> None:
    assert hwsim("new", tmp_path, "--template", template).stdout.splitlines()[-1].endswith("--find rate")
    pair = (tmp_path / "machine.yaml", tmp_path / "workload.yaml")
    assert hwsim("check", *pair).stderr == ""
    changed = (tmp_path / "workload.yaml").read_text("utf-8")
    (tmp_path / "workload.yaml").write_text(re.sub(r"requests: \d+", f"requests: {requests}", changed), encoding="utf-8")
    done = hwsim("simulate", *pair)
    assert "VIOLATED" not in done.stdout
    assert "warning" not in done.stdout


# ---- the process


def test_the_help_lists_every_command_and_imports_none() -> None:
    code = "import sys; from hwsim.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in COMMANDS:
        assert f"  {name} " in done.stdout
    loaded = set(done.stdout.splitlines()[-1].split())  # not the help's own words: it names numpy
    assert "hwsim.cli" in loaded
    assert not {"numpy", "yaml", "simpy", "rich", "matplotlib", "hwsim.api", "hwsim.cli.simulate"} & loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_begins_as_the_list_says_what_it_is_for(name: str) -> None:
    done = hwsim(name, "--help")
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_commands_are_files_and_files_are_commands(root: Path) -> None:
    shared = {
        "__init__", "arguments", "better", "cost_options", "errors", "files", "logs", "model_files", "nodes", "predicting",
        "progress", "steps", "studies", "traces", "trained", "views",
    }  # fmt: skip
    folders = (root / "hwsim" / "cli", root / "calibrate" / "hwsim_calibrate" / "cli")
    stems = {path.stem for folder in folders for path in folder.glob("*.py")} - shared
    assert {"import" if stem == "imports" else stem for stem in stems} == set(COMMANDS) - set(VIEWS)


def test_output_is_utf8_whatever_the_locale(workload: Path) -> None:
    import os

    done = process("simulate", MACHINE, workload, env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert "█" in done.stdout


def test_exit_codes_reach_the_shell(workload: Path) -> None:
    assert process("--version").returncode == 0
    assert process("simulate", MACHINE, "nowhere").returncode == 2
    assert process("simulate", MACHINE, workload, "--set", "size=1 MB", "--expect").returncode == 3


def test_a_reader_that_stops_reading_is_no_error(workload: Path) -> None:
    workload.write_text(
        WORKLOAD.replace("program:\n", "program:\n  - repeat: {times: 3000, do: [{busy: {device: cpu, time: 1 us}}]}\n")
    )
    command = [sys.executable, "-m", "hwsim", "simulate", MACHINE, str(workload), "--json", "--ops"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(1)
        running.stdout.close()
        assert running.stderr.read() == b""


def test_the_hint_to_explain_fits_100_columns_and_can_be_pasted(workload: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workload.parent)
    settings = [
        "--set",
        "size=80 MB",
        "--set",
        "machine.links.slots.bandwidth=10 GB/s",
        "--set",
        "machine.links.uplink.bandwidth=20 GB/s",
    ]
    found = re.search(r"next: hwsim ([^#]*?)(?:   \(why|$)", hwsim("simulate", MACHINE, workload.name, *settings).output.rstrip())
    assert found is not None
    assert max(map(len, found[0].splitlines())) <= 100
    assert shlex.split(found[1].replace("\\\n", "")) == ["explain", MACHINE, workload.name, *settings]


def test_idle_resources_are_counted_one_by_one(workload: Path) -> None:
    run = simulate(MACHINE, workload)
    idle = [row.capacity for row in run.usage if not row.busy_fs]
    assert f"{len(idle)} idle resources (-v)" in run.summary()
