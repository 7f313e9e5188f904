"""Shared by all tests: hypothesis profiles, options, and data that only some machines have."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack
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


SLOW = "mark.slow"  # a file without these words has no slow test
EXAMPLE = ">>> "
LIBRARY = (f"{ROOT / 'machines'}{os.sep}", f"{ROOT / 'workloads'}{os.sep}")


class Library(dict[str, Any]):
    """Files of the library that were read: tests read each a hundred times, and change none. Of other files it keeps nothing."""

    def __setitem__(self, name: str, tree: Any) -> None:
        if name.startswith(LIBRARY):
            super().__setitem__(name, tree)


class Kept(dict[str, dict[Any, Any]]):
    """What tests share of each other, where a study's points share more: texts, and nothing that was made of them."""

    def setdefault(self, name: str, default: dict[Any, Any] | None = None) -> Any:
        return self.get(name)


def pytest_configure(config: pytest.Config) -> None:
    from hwsim.spec import memo

    plain, stack = memo.shared, ExitStack()

    def shared(shelf: dict[str, dict[Any, Any]]) -> AbstractContextManager[None]:
        """A study has a store of its own, as a user's has, and begins with what is kept."""
        return plain({name: dict(known) for name, known in shelf.items()} if isinstance(shelf, Kept) else shelf)

    memo.shared = shared  # type: ignore[assignment]
    stack.enter_context(plain(Kept(files=Library(), resolved={})))
    config.add_cleanup(stack.close)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Of files without an example, no doctests; where slow tests are asked for, of files without a slow test nothing."""
    found = yield
    text = file_path.read_text(encoding="utf-8") if found else ""
    if SLOW not in text and parent.config.option.markexpr == "slow":
        return []
    return found if EXAMPLE in text else [collector for collector in found if type(collector) is pytest.Module]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    where = {item.path for item in items if item.get_closest_marker("slow")}
    assert [path for path in where if SLOW not in path.read_text(encoding="utf-8")] == [], "each says `pytest.mark.slow` itself"


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
