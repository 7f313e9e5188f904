"""What pyproject.toml says hwsim needs is what is tried with the lowest versions (`scripts/check.py lowest`)."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from hwsim.cli import COMMANDS
from scripts import lowest


def test_every_requirement_has_a_lower_bound_that_is_tried(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    tried = lowest.bounds()
    extras = [requirement for extra in lowest.EXTRAS for requirement in project["optional-dependencies"][extra]]
    for said in (*project["dependencies"], *extras):
        found = lowest.BOUND.fullmatch(said)
        assert found, f"{said} has no lower bound alone"
        assert tried[found[1]] == found[2]
    assert set(lowest.TOOLS) < set(tried)


def test_every_command_is_tried_or_runs_what_is_timed() -> None:
    words = {command.split()[0] for command in lowest.COMMANDS}
    assert set(COMMANDS) - words == {"explore", "record"}  # it goes on until it is stopped; what it writes is of the moment


def test_no_class_is_made_of_a_class_of_click_with_a_parameter(root: Path) -> None:
    """`click.ParamType[str]` is one from click 8.3 on, and an error before."""
    for path in (root / "hwsim" / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                assert not [base for base in node.bases if isinstance(base, ast.Subscript)], f"{path.name}: {node.name}"
