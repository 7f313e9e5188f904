"""Studies: a table of runs over ranges of values. Each point is one call of `hwsim.api.simulate`."""

from __future__ import annotations

from hwsim.studies.file import StudyFile, load_study
from hwsim.studies.finding import find
from hwsim.studies.journal import Journal
from hwsim.studies.point import Row
from hwsim.studies.running import Interrupted
from hwsim.studies.sweeping import study, sweep
from hwsim.studies.table import Sweep

__all__ = ["Interrupted", "Journal", "Row", "StudyFile", "Sweep", "find", "load_study", "study", "sweep"]
