"""`hwsim record` and `hwsim compare` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import hwsim

SCRIPT = """
import sys
import numpy as np
a = np.ones((int(sys.argv[1]) if sys.argv[1:] else 30, 30))
for _ in range(5):
    b = a @ a.T
print("said", b.shape)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "step.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_a_script_is_recorded_checked_and_compared(script: Path) -> None:
    done = hwsim("record", script, "-o", "out.yaml", "--runs", "2", "--", "20")
    assert done.stdout == "said (20, 20)\n"
    assert "11 calls as 3 statements" in done.stderr
    hwsim("check", "out.yaml")
    compared = hwsim("compare", "laptop", "out.yaml")
    assert "share of error" in compared.stdout


def test_without_a_name_the_files_are_called_after_the_script(script: Path, tmp_path: Path) -> None:
    hwsim("record", script)
    assert {path.name for path in tmp_path.iterdir()} == {"step.py", "step.yaml", "step.measured.json.gz"}


def test_all_numbers_and_a_figure(script: Path, tmp_path: Path) -> None:
    hwsim("record", script)
    done = hwsim("compare", "laptop", "step.yaml", "step.measured.json.gz", "--json", "--plot", "c.svg")
    found = json.loads(done.stdout)
    assert found["hwsim"] == "comparison/2"
    assert sum(row["times"] for row in found["ops"]) == 11
    assert sum(row["share_of_error"] for row in found["ops"]) == pytest.approx(1.0)
    assert {row["known_by"] for row in found["ops"]} == {"formula"}
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("text", "said"),
    [("import numpy as np\nnp.ones(2) @ np.ones(3)\n", "line 2, in <module>"), ("x = 1\n", "makes no numpy or PyTorch calls"),
     ("import sys, numpy as np\nnp.ones(2)\nsys.exit(4)\n", "exit code 4"),
     ("import os, numpy as np\nnp.ones(2)\nos._exit(3)\n", "exit code 3")],
)  # fmt: skip
def test_a_script_that_fails_leaves_nothing(script: Path, tmp_path: Path, text: str, said: str) -> None:
    script.write_text(text, encoding="utf-8")
    done = hwsim("record", script, code=1)
    assert said in done.stderr
    assert "no file was written" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["step.py"]


def test_an_interruption_leaves_nothing(script: Path, tmp_path: Path) -> None:
    script.write_text("import numpy as np\nnp.ones(2)\nraise KeyboardInterrupt\n", encoding="utf-8")
    hwsim("record", script, code=130)
    assert [path.name for path in tmp_path.iterdir()] == ["step.py"]


def test_what_cannot_be_written_is_said_before_the_script_runs(script: Path, tmp_path: Path) -> None:
    script.write_text("from pathlib import Path\nPath('ran').touch()\n", encoding="utf-8")
    done = hwsim("record", script, "-o", "nowhere/out.yaml", code=2)
    assert "no folder 'nowhere'" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_mistakes_of_compare_are_mistakes(script: Path, tmp_path: Path) -> None:
    hwsim("record", script)
    (tmp_path / "bad.json").write_text("{}")
    hwsim("compare", "laptop", "step.yaml", "none.json", code=2)
    assert "no measurements" in hwsim("compare", "laptop", "step.yaml", "bad.json", code=2).stderr
    hwsim("compare", "laptop", "step.yaml", "--plot", "x.txt", code=2)
    hwsim("compare", "no-such-machine", "step.yaml", code=2)


@pytest.mark.parametrize("name", ["step.py", "here.yaml", "notes.txt"])
def test_only_a_recording_is_replaced(script: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "here.yaml").write_text("hwsim: machine/1\nclass: ideal\nname: here\n", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("mine\n", encoding="utf-8")
    before = (tmp_path / name).read_text(encoding="utf-8")
    done = hwsim("record", script, "-o", name, code=2)
    assert ("is an input of this command" if name == "step.py" else "exists and is not a recorded workload") in done.stderr
    assert (tmp_path / name).read_text(encoding="utf-8") == before
    (tmp_path / "out.measured.json.gz").write_bytes(b"\x1f\x8b cut off")
    assert "exists and is not a recording" in hwsim("record", script, "-o", "out.yaml", code=2).stderr
    (tmp_path / "out.measured.json.gz").write_bytes(b"")
    hwsim("record", script, "-o", "out.yaml")
    hwsim("record", script, "-o", "out.yaml")


def test_options_of_the_script_come_after_two_dashes(script: Path) -> None:
    done = hwsim("record", script, "300", "--dtype", "float32", code=2)
    assert "Put arguments of the script after `--`" in done.stderr


CHANGING = """
import numpy as np
for n in range(1, 13):
    np.ones((n, 7)).sum()
"""


def test_a_loop_that_stays_written_out_is_said_and_shown_as_a_line(script: Path) -> None:
    script.write_text(CHANGING, encoding="utf-8")
    done = hwsim("record", script, "--runs", "1")
    assert "sum@4 is written as 12 statements, not as a `repeat`: its shapes differ between calls" in done.stderr
    assert "sum@4 is written as 12 statements" in Path("step.yaml").read_text(encoding="utf-8")
    assert "sum@4.7" in hwsim("compare", "laptop", "step.yaml", "-v").stdout


def test_pages_met_for_the_first_time_are_counted(script: Path) -> None:
    script.write_text("import numpy as np\na = np.ones(6_000_000)\n", encoding="utf-8")  # above every threshold of allocators
    hwsim("record", script, "--runs", "1")
    assert "new_pages: " in Path("step.yaml").read_text(encoding="utf-8")
