"""Shared by all tests: hypothesis profiles, options, and data that only some machines have."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
# before numpy is imported: tests run side by side, and threads of linear algebra would spin for each other's cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# `pytest --hypothesis-profile thorough` or HYPOTHESIS_PROFILE=thorough
settings.register_profile("default", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.register_profile("thorough", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write what the code prints now into the docs and the golden files")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expected outputs are to be rewritten instead of compared; the diff is then for a human to judge."""
    return bool(request.config.getoption("--update"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's directory."""
    return ROOT


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Published measurements and other simulators' results, too many to ship.

    The directory $HWSIM_REFERENCE_DATA, else `shared` beside the project's; tests that need it
    are skipped where there is none.
    """
    named = os.environ.get("HWSIM_REFERENCE_DATA")
    directory = Path(named) if named else ROOT.parent / "shared"
    if not directory.is_dir():
        pytest.skip(f"no reference data in {directory}; set HWSIM_REFERENCE_DATA")
    return directory


@pytest.fixture
def heard() -> Iterator[None]:
    """What a test starts hears signals that the test run itself ignores, as under nohup or behind a shell's `&`."""
    ends = [getattr(signal, name) for name in ("SIGHUP", "SIGINT", "SIGTERM") if hasattr(signal, name)]
    ignored = [end for end in ends if signal.getsignal(end) is signal.SIG_IGN]
    for end in ignored:
        signal.signal(end, signal.SIG_DFL)
    yield
    for end in ignored:
        signal.signal(end, signal.SIG_IGN)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium of this system, driven by Playwright; tests that need it are skipped where there is none.

    It is closed with the module: an open one keeps an event loop running, beside which no test can run its own.
    """
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with api.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=found, args=options)
        yield chromium
        chromium.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and find_spec("cupy") is None:
        pytest.skip("needs a CUDA device and the extra [gpu]")
