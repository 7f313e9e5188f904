"""The docs are run: every page is a story told in a directory of its own, from top to bottom.

Of the fenced blocks of a page,

    yaml      is written to the file its first line names (`# machine.yaml`) and must be valid
    console   `$ hwsim ...` and `$ python ...` are run there and must print what the page shows;
              a line `...` stands for any lines
    python    is run in one namespace per page; `>>>` examples must print what they show

Blocks of any other kind (`sh`, `text`) are for the reader only.  `pytest --update` writes what
the commands print now into the pages.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import hwsim
from hwsim.results import invariants
from tests.each import each
from tests.warm import Warm

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("tests/*.md"), *ROOT.glob("calibrate/**/*.md"), *ROOT.glob("docs/**/*.md")]
    if "_build" not in path.parts
)
RUN = {"yaml", "console", "python"}
FENCE = re.compile(r"^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s#]+)(?:#[^)\s]*)?\)")
FILE_NAME = re.compile(r"# (\S+\.yaml)")


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    line: int  # of the page, where the text begins
    start: int
    end: int


def blocks(page: str) -> list[Block]:
    return [
        Block(match["kind"], match["text"], page.count("\n", 0, match.start("text")) + 1, match.start("text"), match.end("text"))
        for match in FENCE.finditer(page)
    ]


def in_utf8() -> dict[str, str]:
    """No colours, no terminal width, one day for the age of prices: the same on every system."""
    return {
        **os.environ,
        "PYTHONUTF8": "1",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "PYTHONPATH": str(ROOT),
        "SOURCE_DATE_EPOCH": "1795392000",
    }


@pytest.fixture(scope="module")
def warm(root: Path) -> Iterator[Warm]:
    found = Warm(root)
    yield found
    found.close()


@dataclass(frozen=True)
class Shell:
    """Where a page is played."""

    directory: Path
    warm: Warm

    def outcome(self, command: str) -> tuple[str, int]:
        """What a reader sees, both streams in order, and the exit status."""
        words = shlex.split(command)
        if words[0] == "hwsim":
            printed, status = self.warm.run(words[1:], self.directory, in_utf8())
        elif words[0] == "python":
            done = subprocess.run(
                [sys.executable, *words[1:]],
                cwd=self.directory,
                env=in_utf8(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                check=False,
                timeout=60,
            )
            printed, status = done.stdout, done.returncode
        else:
            pytest.fail(f"a console block runs `hwsim` and `python`, not `{words[0]}`; use a `sh` block for what is only shown")
        return "".join(f"{line.rstrip()}\n" for line in printed.splitlines()), status

    def printed_by(self, command: str) -> str:
        """As a page shows it: with the exit status in a last line, if it is not 0."""
        printed, status = self.outcome(command)
        if status < 0:
            pytest.fail(f"`{command}` was ended by signal {-status}, in place of an answer")
        return printed + (f"(exit {status})\n" if status else "")


def runs(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what the page says it prints."""
    if not text.startswith("$ "):
        pytest.fail("a console block begins with a command: `$ hwsim ...`")
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def told(expected: str, printed: str) -> bool:
    """Whether the page shows what was printed; a line `...` of the page stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in expected.rstrip().splitlines()
    )
    return re.fullmatch(pattern, printed.rstrip() + "\n" if printed.strip() else "") is not None


def renewed(expected: str, printed: str) -> str:
    """What is printed, cut where the page cuts it: as many lines between two `...` as before, from where the first word is."""
    lines, found, at = printed.splitlines(keepends=True), "", 0
    parts = [part.splitlines(keepends=True) for part in re.split(r"^\.\.\.\n", expected, flags=re.MULTILINE)]
    for number, part in enumerate(parts):
        if number and number == len(parts) - 1:
            at = max(at, len(lines) - len(part))
        elif number and part:
            word = part[0].split()[:1]
            at = next((place for place in range(at, len(lines)) if lines[place].split()[:1] == word), at)
        found += "...\n" * (number > 0) + "".join(lines[at : at + len(part)])
        at += len(part)
    return found if told(found, printed) else printed


def play_console(block: Block, shell: Shell, *, update: bool) -> str:
    """The block as it should read."""
    new = ""
    for command, expected in runs(block.text):
        printed = shell.printed_by(command)
        if update and not told(expected, printed):
            expected = renewed(expected, printed)
        new += f"$ {command}\n{expected}"
        if not told(expected, printed):
            pytest.fail(f"line {block.line}: `{command}` printed\n\n{printed}\ninstead of\n\n{expected}", pytrace=False)
    return new


def play_yaml(block: Block, shell: Shell) -> None:
    named = FILE_NAME.match(block.text)
    path = shell.directory / (named[1] if named else "unnamed.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    printed, status = replace(shell, directory=path.parent).outcome(f"hwsim check {path.name}")
    if status:
        pytest.fail(f"line {block.line}: {printed}", pytrace=False)


def play_python(block: Block, directory: Path, names: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    if ">>>" not in block.text:
        exec(compile(block.text, f"line {block.line}", "exec"), names)
        return
    examples = doctest.DocTestParser().get_doctest(block.text, names, "example", None, block.line - 1)
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(examples, out=report.append, clear_globs=False)
    names.update(examples.globs)
    if report:
        pytest.fail("".join(report), pytrace=False)


@pytest.mark.parametrize(
    "name", [name for name in PAGES if RUN & {block.kind for block in blocks((ROOT / name).read_text("utf-8"))}]
)
def test_what_a_page_shows_is_what_happens(
    name: str, tmp_path: Path, warm: Warm, monkeypatch: pytest.MonkeyPatch, update: bool
) -> None:
    page, shell = (ROOT / name).read_text(encoding="utf-8"), Shell(tmp_path, warm)
    new, at = "", 0
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        shown = block.text
        match block.kind:
            case "yaml":
                play_yaml(block, shell)
            case "console":
                shown = play_console(block, shell, update=update)
            case "python":
                play_python(block, tmp_path, names, monkeypatch)
        new += page[at : block.start] + shown
        at = block.end
    new += page[at:]
    if update and new != page:
        (ROOT / name).write_text(invariants.checked_text(new), encoding="utf-8", newline="\n")


def test_output_of_a_command_is_compared() -> None:
    """A command with its output is in a `console` block; `tests/test_extending.py` runs those of docs/extending.md."""
    shown = {
        name
        for name in PAGES
        for block in blocks((ROOT / name).read_text(encoding="utf-8"))
        if block.kind != "console" and block.text.startswith("$ ")
    }
    assert shown == {"docs/extending.md"}


@each("name", PAGES)
def test_links_between_pages_lead_somewhere(name: str) -> None:
    page = FENCE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    targets = [match["target"] for match in LINK.finditer(page) if "://" not in match["target"]]
    assert [target for target in targets if not ((ROOT / name).parent / target).exists()] == []


def test_the_first_block_of_the_readme_is_two_lines_that_need_nothing_else() -> None:
    """It is what `.ci/run` runs: one line to run hwsim, one to test it, in either order."""
    first = blocks((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    lines = first.text.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("python3 -m venv .venv && .venv/bin/pip install ") for line in lines)
    files = re.findall(r"\S+\.(?:yaml|py)\b", first.text)
    assert len(files) >= 3
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_the_first_block_of_the_tests_is_the_second_command_that_ci_runs() -> None:
    [line] = blocks((ROOT / "tests/README.md").read_text(encoding="utf-8"))[0].text.splitlines()
    assert line == ".venv/bin/python scripts/check.py lowest"
    asked = subprocess.run(
        [sys.executable, "scripts/check.py", "--help"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    assert {"slow", "lowest"} <= set(re.findall(r"\w+", asked.stdout))


def test_the_answers_name_the_caches_that_the_machine_has() -> None:
    answer = (ROOT / "docs/answers.md").read_text(encoding="utf-8").partition("## 5.")[2].partition("## 6.")[0]
    sizes = re.findall(r"L\d:\n +size: (\S+ \S+)", hwsim.show("desktop"))
    assert f"caches hold {', '.join(sizes[:-1])} and {sizes[-1]}" in " ".join(answer.split())


def test_decisions_are_few_and_short() -> None:
    """At most forty, numbered without gaps in the order of the index, each half a page."""
    pages = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    assert len(pages) <= 40
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    assert [page.name for page in pages] == re.findall(r"^\| \[\d{4}\]\(([^)]+)\)", index, re.MULTILINE)
    assert [page.name for page in pages if len(page.read_text(encoding="utf-8").splitlines()) > 40] == []


def test_a_decision_that_is_named_is_there() -> None:
    known = {path.name[:4] for path in (ROOT / "docs/decisions").glob("[0-9]*.md")}
    code = [*ROOT.glob("hwsim/**/*.py"), *ROOT.glob("calibrate/**/*.py"), *ROOT.glob("core/src/**/*.*")]
    texts = [ROOT / "pyproject.toml", *(ROOT / name for name in PAGES), *code]
    lost = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in texts
        for named in re.findall(r"decisions?[ /](\d{4}(?:(?: \([^)]*\))?(?:,| and) \d{4})*)", path.read_text(encoding="utf-8"))
        for number in re.findall(r"\d{4}", named)
        if number not in known
    }
    assert lost == set()


def test_every_decision_answers_the_four_questions() -> None:
    for path in (ROOT / "docs/decisions").glob("[0-9]*.md"):
        headings = re.findall(r"^## (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Decision", "What follows", "What would change it"], path.name


@pytest.mark.parametrize("script", ["d2l.py", "reference.py"])
def test_a_written_page_is_what_its_script_writes(root: Path, script: str) -> None:
    done = subprocess.run(
        [sys.executable, f"scripts/{script}", "--check"], cwd=root, check=False, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert done.returncode == 0, f"the page is out of date: run python scripts/{script}"
