"""Full and closed outputs, poor environments, folders that are gone: an answer, or words and an exit code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hwsim
from hwsim.cli.arguments import folded

RUN = ("simulate", "d2l-laptop", "d2l/async-loop", "--set", "n=5")
SWEEP = ("sweep", "d2l-laptop", "d2l/async-loop", "--vary", "n=1..3", "--workers", "1")
POSIX = pytest.mark.skipif(os.name == "nt", reason="of POSIX")
FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line of the shell with `hwsim` in it."""
    # no bytecode is written: Python before 3.13 keeps half a file where a disk is full; what lies elsewhere is read
    own = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPYCACHEPREFIX")},
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        **environment,
    }
    text = line.replace("hwsim", f"'{sys.executable}' -m hwsim")
    return subprocess.run(["sh", "-c", text], cwd=folder, env=own, capture_output=True, text=True, check=False)


@FULL
@pytest.mark.parametrize(
    "command", ["--version", "--help", "simulate --help", "show", " ".join(RUN), " ".join((*RUN, "--json")), " ".join(SWEEP),
                "schema machine", "check nope.yaml", "explain d2l-laptop d2l/async-loop --set n=5 --no-what-if"]
)  # fmt: skip
def test_a_full_output_is_said_in_one_line(command: str, tmp_path: Path) -> None:
    done = shell(f"hwsim {command} > /dev/full", tmp_path)
    assert done.returncode == (2 if "nope" in command else 1)
    assert done.stderr.splitlines()[-1] in ("the output: No space left on device", "there is no file 'nope.yaml'")
    assert "Traceback" not in done.stderr


@FULL
def test_files_are_written_where_the_output_is_full(tmp_path: Path) -> None:
    done = shell(f"hwsim {' '.join(SWEEP)} -o s.csv > /dev/full", tmp_path)
    assert done.returncode == 1
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 4


@FULL
def test_a_full_error_output_is_no_traceback_and_no_success(tmp_path: Path) -> None:
    done = shell("hwsim simulate d2l-laptop nope 2> /dev/full", tmp_path)
    assert (done.returncode in (1, 2), done.stdout) == (True, "")


@POSIX
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_leads_nowhere(closed: str, tmp_path: Path) -> None:
    """No file that is opened gets its number: what others print stays out of it."""
    done = shell(f"hwsim {' '.join(SWEEP)} -o s.csv {closed}", tmp_path)
    assert done.returncode == 0
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 4
    assert shell(f"hwsim simulate d2l-laptop nope {closed}", tmp_path).returncode == 2
    if ">&-" not in closed.split():
        assert "not ranked" in done.stdout


@POSIX
def test_standard_input_that_is_closed_is_said(tmp_path: Path) -> None:
    done = shell("hwsim simulate - d2l/async-loop <&-", tmp_path)
    assert (done.returncode, done.stderr) == (2, "<stdin>: standard input is closed\n")


@POSIX
@pytest.mark.parametrize("command", ["show d2l-4gpu-pcie", f"{' '.join(RUN)} --json --ops"])
def test_a_reader_that_goes_is_a_quiet_end(command: str, tmp_path: Path) -> None:
    done = shell(f"hwsim {command} | head -c 1", tmp_path)
    assert (len(done.stdout), done.stderr) == (1, "")


@POSIX
def test_a_file_beyond_the_largest_that_may_be_written_leaves_nothing(tmp_path: Path) -> None:
    done = shell(f"ulimit -f 1; hwsim {' '.join(RUN)} --trace t.json", tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "t.json: File too large")
    assert "resource" in done.stdout
    assert not list(tmp_path.iterdir())


@POSIX
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    done = shell(f"hwsim {' '.join(RUN)} --trace t.json", tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "t.json: Permission denied")


@POSIX
def test_a_working_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = shell(f"cd gone && rmdir ../gone && hwsim {' '.join(RUN)} --trace t.json", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "the working directory: No such file or directory"


@pytest.mark.parametrize(
    "environment",
    [{"HOME": "/nowhere", "TMPDIR": "/nowhere", "TEMP": "/nowhere", "LC_ALL": "C", "PYTHONHASHSEED": "1"},
     {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TERM": "dumb", "COLUMNS": "40"},
     {"LC_ALL": "tr_TR.UTF-8", "PYTHONIOENCODING": "latin-1", "NO_COLOR": "1", "TZ": "Asia/Kathmandu"}],
    ids=lambda each: " ".join(f"{key}={value}" for key, value in each.items()),
)  # fmt: skip
@POSIX
def test_the_answer_depends_on_no_environment(environment: dict[str, str], tmp_path: Path) -> None:
    done = shell(f"hwsim {' '.join(RUN)} --plot gantt g.svg --json", tmp_path, **environment)
    assert (done.returncode, done.stderr) == (0, "wrote g.svg\n")
    assert json.loads(done.stdout)["makespan_s"] == 0.00017
    assert (tmp_path / "g.svg").stat().st_size > 1000


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_no_line_is_longer_than_the_terminal_is_wide(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": 5}, expect=False)
    said = f"{run}{hwsim.explain(run)}"
    assert folded(said) == said, "pipes and files have lines as they are"
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", Terminal())
    shown = folded(said)
    assert all(len(line) <= columns or len(line.split()) == 1 for line in shown.splitlines())
    assert shown.split() == said.split()
    assert (shown == said) == (columns >= max(map(len, said.splitlines())))


def test_an_interrupt_while_packages_are_imported_is_one_line() -> None:
    code = """
import sys
class Interrupted:
    def find_spec(self, name, *more):
        if name == "click":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from hwsim.__main__ import run
run()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
