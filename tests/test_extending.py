"""The examples of docs/extending.md, done: each puts its files and its line into a copy of the package and runs its commands."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.test_docs import FENCE, ROOT, in_utf8, runs

PAGE: Final = ROOT / "docs" / "extending.md"
SECTION: Final = re.compile(r"^## (.*)\n", re.MULTILINE)
NAMED: Final = re.compile(r"# (\S+)\n")
OF_THE_PACKAGE: Final = ("hwsim/", "machines/", "workloads/")


@dataclass(frozen=True)
class Example:
    files: dict[str, str]  # path -> text
    lines: dict[str, tuple[str, str]]  # file of a table -> (line above, new line)
    commands: list[tuple[str, str]]  # with what the page says they print

    @property
    def added(self) -> list[str]:
        return [path for path in self.files if path.startswith(OF_THE_PACKAGE)]


def examples() -> dict[str, Example]:
    parts = SECTION.split(PAGE.read_text(encoding="utf-8"))[1:]
    return {title: example(text) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def example(text: str) -> Example:
    result = Example({}, {}, [])
    for match in FENCE.finditer(text):
        kind, body = match["kind"], match["text"]
        if kind in ("py", "yml"):
            named = NAMED.match(body)
            assert named is not None, body
            result.files[named[1]] = body[named.end() :]
        elif kind == "diff":
            head, above, new = body.splitlines()
            assert (head[:4], above[0], new[0]) == ("+++ ", " ", "+"), body
            result.lines[head[4:]] = above[1:], new[1:]
        elif kind == "text":
            result.commands.extend(runs(body))
    return result


EXAMPLES: Final = examples()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with all examples in it."""
    copy = tmp_path_factory.mktemp("extended")
    for folder in ("hwsim", "machines", "workloads"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for title, extension in EXAMPLES.items():
        for path, text in extension.files.items():
            assert not (copy / path).exists(), f"{title}: {path} is there already"
            (copy / path).parent.mkdir(exist_ok=True)
            (copy / path).write_text(text, encoding="utf-8")
        for path, (above, new) in extension.lines.items():
            table = (copy / path).read_text(encoding="utf-8")
            assert table.count(f"{above}\n") == 1, f"{title}: {path} has no single line {above!r}"
            (copy / path).write_text(table.replace(f"{above}\n", f"{above}\n{new}\n"), encoding="utf-8")
    return copy


@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_is_one_file_or_folder_and_at_most_one_line(title: str) -> None:
    added = [Path(path) for path in EXAMPLES[title].added]
    assert len(added) == 1 or len({path.parent for path in added if not (ROOT / path).parent.exists()}) == 1
    assert len(EXAMPLES[title].lines) <= 1


@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_does_what_the_page_shows(title: str, package: Path, update: bool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for command, shown in EXAMPLES[title].commands:
        printed = run(command, package)
        if update:
            page = page.replace(f"$ {command}\n{shown}", f"$ {command}\n{printed}")
        else:
            assert printed == shown, command
    if update:
        PAGE.write_text(page, encoding="utf-8")


@pytest.mark.parametrize("every", [0, 1, 2, 4])  # ms
def test_jobs_of_a_new_family_wait_as_by_hand(every: int, package: Path) -> None:
    """Job j begins with its turn on its device, or as it comes: D/D/2, above what two devices can do but for the last."""
    time, jobs, devices = 6, 10, 2
    command = f"hwsim simulate workstation ten.yaml --set workload.batch.every={every}ms --json"
    [found] = json.loads(run(command, package))["batches"]
    waits = [max(0, j // devices * time + j % devices * every - j * every) for j in range(jobs)]
    assert found["wait_mean_s"] == pytest.approx(sum(waits) / jobs / 1e3)
    assert found["wait_p95_s"] == pytest.approx(max(waits) / 1e3)
    assert found["makespan_s"] == pytest.approx(((jobs - 1) * every + waits[-1] + time) / 1e3)


def run(command: str, package: Path) -> str:
    """The output of a command of the copy."""
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=package,
        env={**in_utf8(), "PYTHONPATH": str(package)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    ended = f"(exit {done.returncode})\n" if done.returncode else ""
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines()) + ended
