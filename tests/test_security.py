"""What SECURITY.md says of the whole code: which modules reach out, or turn texts into code; and that its files are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted([*(ROOT / "hwsim").rglob("*.py"), *(ROOT / "calibrate" / "hwsim_calibrate").rglob("*.py")])
REACH = {"socket", "ssl", "urllib", "http", "requests", "httpx", "ftplib", "smtplib", "subprocess", "webbrowser", "distributed"}
REACHING = {  # a server and a browser on this computer; a C compiler, to measure
    "hwsim/explorer/server.py": {"socket"}, "hwsim/explorer/launcher.py": {"socket", "webbrowser"},
    "hwsim/cli/explore.py": {"webbrowser"},
    "calibrate/hwsim_calibrate/pointer_chase.py": {"subprocess"},
}  # fmt: skip
CODE = {"eval", "exec", "compile", "__import__"}
WRONG = {"os.system", "os.popen", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "builtins.eval", "builtins.exec"}
LOADS = ("pickle.", "marshal.", "shelve.", "dill.", "cloudpickle.", "joblib.")  # whose `load` runs what it reads
TRUSTED = {
    "hwsim/records.py": {"exec"}  # methods of classes, from their fields
}


@cache
def parsed() -> dict[str, ast.Module]:
    """The modules in which one of the words stands, by their paths in the project."""
    words = re.compile(rf"\b(?:{'|'.join([*REACH, *CODE, *map(re.escape, [*WRONG, *LOADS])])})")
    texts = {file.relative_to(ROOT).as_posix(): file.read_text("utf-8") for file in FILES}
    return {name: ast.parse(text) for name, text in texts.items() if words.search(text)}


def imported(tree: ast.Module) -> set[str]:
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def called(tree: ast.Module) -> set[str]:
    """Names of functions that are called; with the module before a dot."""
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    plain = {call.id for call in calls if isinstance(call, ast.Name)}
    dotted = [call for call in calls if isinstance(call, ast.Attribute)]
    return plain | {f"{call.value.id}.{call.attr}" for call in dotted if isinstance(call.value, ast.Name)}


def test_only_these_modules_reach_beyond_the_process() -> None:
    found = {name: imported(tree) & REACH for name, tree in parsed().items()}
    assert {name: modules for name, modules in found.items() if modules} == REACHING


def test_no_text_becomes_code() -> None:
    found = {}
    for name, tree in parsed().items():
        calls = {call for call in called(tree) if call in CODE or call in WRONG or (call.startswith(LOADS) and "load" in call)}
        if calls:
            found[name] = calls
    assert found == TRUSTED


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/reliability.md"])
def test_the_tests_that_it_names_are_there(page: str) -> None:
    named = set(re.findall(r"`(?:tests/)?(test_\w+\.py)`", (ROOT / page).read_text("utf-8")))
    assert named
    assert {name for name in named if not (ROOT / "tests" / name).exists()} == set()
