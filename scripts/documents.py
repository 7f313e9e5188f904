"""Whether a change that should move no answer moves one: documents kept at one commit and compared at another, to the byte.

usage: python scripts/documents.py keep FOLDER        (in the older checkout, or with PYTHONPATH set to it)
       python scripts/documents.py compare FOLDER     (in the newer one; exit code 1 if a byte differs)

Of every workload of the library that names its machine: `simulate --json --ops` and `explain --json`. Of every command of the
guide that needs no file of its page: what it prints, its --json, --plot and --report. Run it with PYTHONHASHSEED=0 and =7, too.
HWSIM_FAST=always has compiled code play them.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
from click.testing import CliRunner

from hwsim.cli import COMMANDS, MEASURING, main
from hwsim.spec import find, names, read

ROOT: Final = Path(__file__).resolve().parent.parent
OF_WORKLOADS: Final = {"result": ("simulate", "--json", "--ops", "--no-expect"), "explain": ("explain", "--json")}
OWN_FILE: Final = re.compile(
    r"[\w/-]+\.(yaml|csv|npz|json|jsonl|gz|html|svg|png|log|txt|py)\b|^-o$|--(trace|plot|report|animate|save|journal)"
)
SHOWN: Final = {"--json": None, "--plot": "figure.svg", "--report": "page.html"}  # how a command also tells its answer


def documents() -> Iterator[tuple[str, bytes]]:
    """(name, exit code, what is printed and written) of every document."""
    for workload in names("workload"):
        wanted = read(find("workload", workload)).get("expect")
        if wanted is None or wanted.get("machine") is None:
            continue
        for kind, (command, *options) in OF_WORKLOADS.items():
            words = [command, str(wanted.text("machine")), workload, *options]
            yield f"{workload.replace('/', '_')}.{kind}.gz", _done(words)
    for number, words in enumerate(of_guide()):
        yield f"guide-{number:03}-{words[0]}.text.gz", _done(words)
        for option, file in SHOWN.items():
            if option in _options(words[0]) and option not in words:
                yield f"guide-{number:03}-{words[0]}{option}.gz", _done([*words, option, *([file] if file else [])], file)


def of_guide() -> list[list[str]]:
    """The commands of the guide that need no file of its pages, in the order of their words."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    lines = {line for page in pages for line in re.findall(r"(?m)^\$ hwsim (.*)$", page.read_text("utf-8"))}
    split = [shlex.split(line) for line in sorted(lines)]
    return [words for words in split if words[0] in COMMANDS.keys() - MEASURING and not any(map(OWN_FILE.search, words))]


def _options(name: str) -> set[str]:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return {option for parameter in command.params for option in parameter.opts}


def _done(words: Sequence[str], file: str | None = None) -> bytes:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        said = CliRunner().invoke(main, list(words))
        written = Path(file).read_bytes() if file and Path(file).exists() else b""
    return f"hwsim {shlex.join(words)}\n{said.exit_code}\n{said.output}".encode() + written


def run(what: str, folder: Path) -> int:
    """Write the documents, or say which differ from those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    count = differ = 0
    for name, content in documents():
        count += 1
        path = folder / name
        if what == "keep":
            path.write_bytes(gzip.compress(content, mtime=0))
        elif not path.exists() or gzip.decompress(path.read_bytes()) != content:
            differ += 1
            print(f"{name} differs: {content.splitlines()[0].decode()}", flush=True)
    print(f"{count} documents, {differ} of them differ" if what == "compare" else f"{count} documents kept")
    return int(differ > 0)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("keep", "compare"):
        sys.exit(__doc__)
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "SOURCE_DATE_EPOCH": "1795392000"}  # the day that prices are looked at
    sys.exit(run(sys.argv[1], Path(sys.argv[2]).resolve()))
