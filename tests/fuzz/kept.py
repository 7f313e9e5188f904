"""Cases that once found a defect, as files: they stay what they were when the ways to make cases change.

A journal of another version is refused before it is read, so the version of hwsim is written as `@hwsim` in them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from hwsim import __version__
from tests.fuzz.case import Case

_VERSION: Final = f'"version":"{__version__}"', '"version":"@hwsim"'  # of the head of a journal
KEPT: Final = Path(__file__).resolve().parents[1] / "data" / "fuzz" / "kept.jsonl"  # a line for each case


def kept() -> tuple[Case, ...]:
    """The cases."""
    return tuple(map(_read, KEPT.read_text("utf-8").splitlines()))


def keep(cases: Iterable[Case]) -> None:
    """Add cases to the file."""
    lines = [*KEPT.read_text("utf-8").splitlines(), *map(as_line, cases)] if KEPT.exists() else [*map(as_line, cases)]
    KEPT.write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)), "utf-8")


def as_line(case: Case) -> str:
    """A case as a line of JSON."""
    files = {name: _text(data) for name, data in case.files.items()}
    return json.dumps({"kind": case.kind, "seed": case.seed, "arguments": case.arguments, "files": files})


def _text(data: bytes) -> str | dict[str, str]:
    try:
        return data.decode("utf-8").replace(*_VERSION)
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _read(line: str) -> Case:
    said = json.loads(line)
    files = {
        name: base64.b64decode(text["base64"]) if isinstance(text, dict) else text.replace(*_VERSION[::-1]).encode("utf-8")
        for name, text in said["files"].items()
    }
    return Case(said["kind"], said["seed"], tuple(said["arguments"]), files)
