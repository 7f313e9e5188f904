"""The labs run from top to bottom, and each has what a lab has."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest

from hwsim.views.kit.answer_forms import NotebookPicture
from tests.loading import script
from tests.test_docs import ROOT

FOLDER: Final = ROOT / "docs" / "labs"
PARTS: Final = ("Your prediction", "Run", "Picture", "Arithmetic", "Vary", "Exercises")
LABS: Final = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")
FEW: Final = [FOLDER / "one-large-or-many-small.md"]


def cells_of(path: Path) -> list[str]:
    """Code of a lab's cells."""
    pytest.importorskip("jupytext")
    return [cell.source for cell in script("notebooks").read(path).cells if cell.cell_type == "code"]


def values_of(path: Path) -> list[Any]:
    """Run a lab in a namespace of its own, as a kernel runs it; the values of its cells' last lines."""
    names: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for number, cell in enumerate(cells_of(path)):
        *lines, last = ast.parse(cell).body
        exec(compile(ast.Module(lines, []), f"{path.name}, cell {number}", "exec"), names)
        kind = ast.Expression(last.value) if isinstance(last, ast.Expr) else ast.Module([last], [])
        code = compile(kind, f"{path.name}, cell {number}", "eval" if isinstance(last, ast.Expr) else "exec")
        values.append(eval(code, names))
    return values


@pytest.mark.parametrize("lab", LABS, ids=lambda path: path.stem)
def test_a_lab_runs(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert any(isinstance(value, NotebookPicture) for value in values_of(lab))
    assert capsys.readouterr().err == ""


def in_a_kernel(paths: list[Path]) -> Any:
    """All of them one after the other in one kernel, whose errors are the test's; nothing of a lab is left to the next."""
    nbformat = pytest.importorskip("nbformat.v4")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = []
    for path in paths:
        cells.append(nbformat.new_code_cell(f"%reset -f\n# {path.relative_to(FOLDER)}"))
        cells += [nbformat.new_code_cell(cell) for cell in cells_of(path)]
    notebook = nbformat.new_notebook(cells=cells)
    before = dict(os.environ)
    os.environ |= {
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error,ignore::PendingDeprecationWarning:ipykernel.kernelbase",  # of its own shutdown
        "JUPYTER_PLATFORM_DIRS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    try:
        client.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return notebook


@pytest.mark.parametrize("labs", [FEW, pytest.param([*LABS, *sorted(FOLDER.glob("solutions/*.md"))], marks=pytest.mark.slow)])
def test_labs_run_in_a_kernel(labs: list[Path]) -> None:
    notebook = in_a_kernel(labs)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= len(set(labs) & set(LABS))


@pytest.mark.parametrize("lab", LABS, ids=lambda path: path.stem)
def test_a_lab_has_all_its_parts(lab: Path) -> None:
    page = lab.read_text(encoding="utf-8")
    parts = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert tuple(parts) == PARTS
    cells: dict[str, str] = dict(re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert re.search(r"^my_\w+ = ", cells["Your prediction"], re.MULTILINE)
    assert "assert " in cells["Arithmetic"], "numbers by hand are compared with those simulated"
    assert ".plot()" in cells["Picture"]
    exercises = len(re.findall(r"^\d\. ", cells["Exercises"], re.MULTILINE))
    solution = (FOLDER / "solutions" / lab.name).read_text(encoding="utf-8")
    assert len(re.findall(r"^## \d\. ", solution, re.MULTILINE)) == exercises
    assert f"]({lab.name})" in (FOLDER / "index.md").read_text(encoding="utf-8")


def test_labs_are_written_as_notebooks(tmp_path: Path) -> None:
    pytest.importorskip("jupytext")
    written = script("notebooks").write(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in written} >= {"overlap.ipynb", "solutions/overlap.ipynb"}
    assert all(path.read_text(encoding="utf-8").lstrip().startswith("{") for path in written)
