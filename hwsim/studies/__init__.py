"""Studies: a table of runs over ranges of values. Each point is one call of `hwsim.api.simulate`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

__all__ = ["Interrupted", "Journal", "Row", "StudyFile", "Sweep", "find", "load_study", "study", "sweep"]

_HOMES: Final = {
    "Interrupted": "running",
    "Journal": "journal",
    "Row": "point",
    "StudyFile": "file",
    "Sweep": "table",
    "find": "finding",
    "load_study": "file",
    "study": "sweeping",
    "sweep": "sweeping",
}

if TYPE_CHECKING:
    from hwsim.studies.file import StudyFile, load_study
    from hwsim.studies.finding import find
    from hwsim.studies.journal import Journal
    from hwsim.studies.point import Row
    from hwsim.studies.running import Interrupted
    from hwsim.studies.sweeping import study, sweep
    from hwsim.studies.table import Sweep
else:

    def __getattr__(name: str) -> object:
        """A session needs none of them: each is imported on first use."""
        if name not in _HOMES:
            raise AttributeError(f"module 'hwsim.studies' has no attribute {name!r}")
        return getattr(import_module(f"hwsim.studies.{_HOMES[name]}"), name)
