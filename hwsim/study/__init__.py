"""Studies: a table of runs over ranges of values. Each point is one call of `hwsim.api.simulate`."""

from __future__ import annotations

from hwsim.study.file import StudyFile, load_study
from hwsim.study.finding import find
from hwsim.study.journal import Journal
from hwsim.study.point import Row
from hwsim.study.running import Interrupted
from hwsim.study.sweeping import study, sweep
from hwsim.study.table import Sweep

__all__ = ["Interrupted", "Journal", "Row", "StudyFile", "Sweep", "find", "load_study", "study", "sweep"]
