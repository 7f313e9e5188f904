"""Commands killed at moments drawn by chance leave whole files and no process, and go on; docs/reliability.md has a thousand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.play import HERE

pytestmark = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="it looks for processes as Linux shows them")
QUICK = ("simulate --trace", "sweep", "sweep, twice at once", "study", "plan", "record")


def killed(moments: int, *more: str) -> None:
    """Kill commands in a process that has no threads, as a test may have: it forks."""
    arguments = [sys.executable, "-m", "tests.fuzz.kills", "--moments", f"{moments}", *more]
    done = subprocess.run(arguments, cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_killed_anywhere_it_goes_on() -> None:
    killed(8, "--commands", *QUICK)


@pytest.mark.slow
def test_killed_at_more_moments_it_goes_on() -> None:
    killed(60, "--seed", "1")
