"""YAML writer: a value on one line, and a changed tree as its original text with single values replaced.

flow({"rank": 512, "of": ["q", "k"]})       # {rank: 512, of: [q, k]}
edited(text, before, after)                 # a new text if more than single values differ
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

import yaml

from hwsim.spec.mistakes import SpecError
from hwsim.spec.tree import Tree
from hwsim.spec.yaml_parser import is_text, read_text

WIDTH: Final = 130
LARGE: Final = 1e6  # magnitude from which floats have an exponent
_SPECIAL: Final = frozenset("#:{}[],&*!|>'\"%@`\n\t")
_QUOTED: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\"""")
_BRACES: Final = re.compile(r"""\{(?:[^{}"']|'[^']*'|"[^"]*")*\}""")  # a number with a source
_IN_LINE: Final = re.compile(r"[^,\[\]{}#\n]*[^,\[\]{}#\s]")  # a plain scalar inside brackets
_PLAIN: Final = re.compile(r"(?:[^#\n]|(?<=\S)#)*?(?=\s+#|\s*$)", re.MULTILINE)


def flow(value: object) -> str:
    """Return a value in flow style on one line.

    >>> flow({"rank": 512, "of": ["q", "k"], "gated": True}), flow("a: b"), flow("2024")
    ('{rank: 512, of: [q, k], gated: true}', '"a: b"', '"2024"')
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: object) -> str:
    """Return a scalar that YAML parses to the same value, also inside brackets and as a key."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return value if _plain(value) else json.dumps(value, ensure_ascii=False)
        case float() if abs(value) >= LARGE:
            digits, _, power = f"{Decimal(repr(value)).normalize():E}".partition("E")
            return f"{digits if '.' in digits else digits + '.0'}e{int(power):+}"  # valid in YAML 1.1
        case _:
            return str(value)


def _plain(text: str) -> bool:
    """Whether a text needs no quotes."""
    is_clean = bool(text) and text == text.strip() and text.isprintable() and not _SPECIAL & set(text)
    return is_clean and text[0] not in "-?" and text not in ("<<", "=") and is_text(text)


def edit_yaml(text: str, before: Tree, after: Tree) -> str:
    """Return the text of `before`, changed to the content of `after`; comments remain if only single values differ."""
    if before is after:
        return text
    lines = text.split("\n")
    changes = [change for change in _changes(before, after) if change is not None]
    for old, new in sorted(changes, key=lambda pair: _place(pair[0]), reverse=True):
        line, column = _place(old)
        if line >= len(lines):
            continue
        row = lines[line][column:]
        is_in_line = lines[line][:column].count("{") + lines[line][:column].count("[") > 0
        token = (_BRACES if row.startswith("{") else _QUOTED).match(row) or (_IN_LINE if is_in_line else _PLAIN).match(row)
        if token is not None:
            lines[line] = lines[line][:column] + scalar(new.value) + row[token.end() :]
    removed = [before.key_place(key).line - 1 for key in dict(before.items()) if after.get(key) is None]
    for line in sorted(removed, reverse=True):
        end = next((index for index in range(line + 1, len(lines)) if lines[index][:1].strip()), len(lines))
        lines[line:end] = []
    result = "\n".join(lines).rstrip("\n") + "\n"
    return result if _has_content(result, after) else to_yaml(after)


def to_yaml(tree: Tree) -> str:
    """Return a tree as YAML, in order of its keys."""
    plain = tree.plain()
    text = yaml.safe_dump(plain, sort_keys=False, width=WIDTH, allow_unicode=True, default_flow_style=None)
    return text if _has_content(text, tree) else json.dumps(plain, ensure_ascii=False, indent=1) + "\n"


def _has_content(text: str, tree: Tree) -> bool:
    try:
        return bool(read_text(text).plain() == tree.plain())
    except SpecError:
        return False


def _changes(before: Tree, after: Tree) -> Iterator[tuple[Tree, Tree] | None]:
    """Pairs of scalars that differ; None for any other difference."""
    if before is after:
        return
    if isinstance(before.value, dict) and isinstance(after.value, dict):
        for key in {**before.value, **after.value}:
            old, new = before.value.get(key), after.value.get(key)
            if old is None or new is None:
                yield None
            else:
                yield from _changes(old, new)
    elif isinstance(before.value, list) and isinstance(after.value, list) and len(before.value) == len(after.value):
        for old, new in zip(before.value, after.value, strict=True):
            yield from _changes(old, new)
    elif isinstance(before.value, list) or isinstance(after.value, dict | list):
        yield None
    elif before.value != after.value or type(before.value) is not type(after.value):
        yield before, after


def _place(tree: Tree) -> tuple[int, int]:
    return tree.place.line - 1, tree.place.column - 1
