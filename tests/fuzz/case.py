"""A case: files, and the arguments of a command."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Made = tuple[list[str], dict[str, bytes]]  # arguments, and files by name


@dataclass(frozen=True)
class Case:
    """Files by name, and arguments."""

    kind: str
    seed: int
    arguments: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)


def text(document: Any) -> bytes:
    """A document as a file of YAML."""
    written = yaml.dump(document, Dumper=DUMPER, allow_unicode=True, sort_keys=False)
    return str(written).encode("utf-8", "surrogatepass")


def written(document: Any, dice: random.Random) -> bytes:
    """A document as YAML or, three times in four, as JSON."""
    return text(document) if dice.random() < 0.25 else as_json(document)


def as_json(document: Any) -> bytes:
    """A document as a file of JSON, which is YAML and written faster."""
    return json.dumps(document).encode("utf-8", "surrogatepass")


def shown(value: Any) -> str:
    """A value as an argument has it."""
    return (value if isinstance(value, str) else json.dumps(value)).replace("\0", "")
