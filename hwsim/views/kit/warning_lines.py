"""Warnings below the output of a command, one paragraph each, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from hwsim.spec import Warning
from hwsim.views.kit.lines import WIDTH


def text(warnings: Sequence[Warning], indent: str = "  ") -> str:
    """Return an empty line and the warnings, ending with a newline; "" without warnings.

    >>> print(text([Warning("lone-barrier", "only program 'a' names the barrier 'x'")]), end="")
    <BLANKLINE>
      warning[lone-barrier]: only program 'a' names the barrier 'x'
    """
    return "".join(f"{line}\n" for line in ("", *lines(warnings, indent))) if warnings else ""


def lines(warnings: Iterable[Warning], indent: str = "  ") -> list[str]:
    """Return each warning after its code, wrapped; codes are not broken."""
    return [line for warning in warnings for line in textwrap.wrap(
        f"warning[{warning.code}]: {warning.message}", WIDTH, initial_indent=indent, subsequent_indent=indent + " " * 4,
        break_long_words=False, break_on_hyphens=False,
    )]  # fmt: skip


def as_dicts(warnings: Iterable[Warning]) -> list[dict[str, Any]]:
    """Return code, text and place of each warning."""
    return [warning.as_dict() for warning in warnings]
