"""A case from a kind and a seed: files, and the arguments of a command. The same seed gives the same case."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tests.fuzz import of_calls, of_data, of_files, of_services, of_tools
from tests.fuzz.case import Case, Made


def case_of(kind: str, seed: int) -> Case:
    """The case of a seed."""
    try:
        arguments, files = KINDS[kind](random.Random(f"{kind} {seed}"))
    except RecursionError:  # nested so deep that it cannot be written
        arguments, files = KINDS[kind](random.Random(f"{kind} {seed} again"))
    return Case(kind, seed, tuple(arguments), files)


KINDS: Final[dict[str, Callable[[random.Random], Made]]] = {
    "machine": of_files.machine,
    "workload": of_files.workload,
    "bytes of either": of_files.torn_bytes,
    "--set and --vary": of_files.setting,
    "options": of_files.option,
    "study": of_files.study,
    "plan": of_files.plan,
    "plan, carried out": of_services.planned,
    "part, model, prices": of_files.other,
    "services": of_services.services,
    "served model": of_services.serving,
    "op graph": of_data.archive,
    "profile": of_data.profile,
    "import": of_tools.imported,
    "measurements": of_data.measured,
    "calibration": of_tools.calibrated,
    "log of a benchmark": of_tools.logged,
    "recorded script": of_tools.recorded,
    "earlier rows": of_data.earlier,
    "trace of arrivals": of_data.trace,
    "explorer": of_calls.explorer,
    "Python": of_calls.python,
}
