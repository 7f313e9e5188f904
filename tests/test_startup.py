"""What every command pays before it does anything: a small run imports no more than it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

ROUNDABOUT = ("numpy.ma", "difflib", "tempfile", "html", "simpy", "matplotlib", "hwsim.families", "hwsim.studies", "hwsim.models")
SERVED = ("hwsim.families.serving.results.statistics", "hwsim.failures", "hwsim.views.summary.document")


@pytest.mark.parametrize("command", ["simulate", "explain"])
def test_a_small_run_imports_nothing_by_the_way(command: str) -> None:
    script = (
        "import sys; from hwsim.cli import main\n"
        f"try: main(['{command}', 'd2l-laptop', 'd2l/async-loop', '--set', 'n=10'])\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = run.stderr.split()
    assert "hwsim.engine" in loaded
    tried = ("simpy", "tempfile") if command == "explain" else ()  # `explain` plays the run with changes
    unasked = ROUNDABOUT if command == "explain" else (*ROUNDABOUT, *SERVED)
    assert [name for name in unasked if name in loaded and name not in tried] == []
