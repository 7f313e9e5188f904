"""Scripts, as modules."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from tests.present import present

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


def script(name: str) -> ModuleType:
    """A script of the project."""
    spec = present(spec_from_file_location(name, SCRIPTS / f"{name}.py"))
    module = module_from_spec(spec)
    present(spec.loader).exec_module(module)
    return module
