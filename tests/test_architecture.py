"""The map in docs/architecture.md is drawn from the code: rooms are the layers, ways are what runs call, in that order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.loading import script
from tests.test_docs import FENCE, ROOT

PAGE: Final = ROOT / "docs" / "architecture.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
STEP: Final = re.compile(r"^(\S+\.py): (\S+)", re.MULTILINE)
RUNS: Final = {
    "a copy": "simulate d2l-gpu-workstation d2l/copy-overlap --no-expect",
    "an all-reduce": "simulate dgx-h100 d2l/allreduce-160mb --no-expect",
    "a training step": "simulate dgx-a100 resnet50-dp --no-expect",
    "a served request": "simulate dgx-h100 llama3-8b-serving --no-expect --set workload.infer.requests=20",
    "a plan": "plan plan.yaml",
    "a table": "simulate d2l-laptop d2l/async-loop --no-expect",
}
QUESTION: Final = "{hwsim: plan/1, machine: dgx-a100, workload: bert-large, minimise: step}"
TRACE: Final = """
import sys
from pathlib import Path
import hwsim
base = str(Path(hwsim.__file__).parent) + "/"
seen = {}
def profile(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(base):
        seen.setdefault(name.removeprefix(base) + ": " + frame.f_code.co_qualname)
from hwsim.cli import main
sys.setprofile(profile)
main(sys.argv[1:], standalone_mode=False)
sys.setprofile(None)
print("\\0" + "\\n".join(seen))
"""


def ways() -> dict[str, list[str]]:
    """Way -> the functions that the page lists."""
    parts = re.split(r"^## Call path of (.*)\n", TEXT, flags=re.MULTILINE)[1:]
    found = {}
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        block = next(match["text"] for match in FENCE.finditer(text))
        found[title] = [f"{file}: {function}" for file, function in STEP.findall(block)]
    return found


def test_the_page_is_a_page() -> None:
    assert TEXT.count("\n") <= 200
    assert [*ways()] == [*RUNS]


@pytest.mark.parametrize("title", RUNS)
def test_a_run_calls_the_functions_of_a_way_in_order(title: str, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(QUESTION, encoding="utf-8")
    code = [sys.executable, "-c", TRACE, *RUNS[title].split()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(code, cwd=tmp_path, env=env, check=True, capture_output=True, encoding="utf-8")
    called = done.stdout.rpartition("\0")[2].split("\n")
    way = ways()[title]
    assert [step for step in way if step not in called] == []
    assert sorted(way, key=called.index) == way


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    found = script("rooms")
    found.imported = cache(found.imported)  # type: ignore[attr-defined]  # it reads every file
    return found


def test_the_rooms_are_those_of_the_package(rooms: ModuleType) -> None:
    assert rooms.page(TEXT) == TEXT, "run python scripts/rooms.py"
    on_disk = {path.stem for path in Path(ROOT, "hwsim").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert on_disk - {"__init__", "__main__"} == set(rooms.rooms())


WORDS: Final = {  # for type checkers only: a door hands on what rooms above it make, and a result what a family found
    "families_interface": {"engine", "graph", "machine", "results"},
    "results": {"families"},
}


def test_no_room_imports_a_room_above_it(rooms: ModuleType) -> None:
    """Also inside functions and for type checkers, which the layers' contract leaves out; but for the words of doors."""
    order = rooms.rooms()
    above = {room: {name for name in rooms.imported(room) if order.index(name) < order.index(room)} for room in order}
    assert {room: up - WORDS.get(room, set()) for room, up in above.items() if up - WORDS.get(room, set())} == {}
