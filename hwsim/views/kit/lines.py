"""Text of 100 columns: labelled lines, wrapped lines, shell commands, and bars of block characters."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

WIDTH: Final = 100  # columns
TITLE: Final = 12  # width of a label (columns)
LABEL: Final = 14  # width of a label in a summary (columns)
BAR: Final = 12  # width of a bar (columns)
_JOIN: Final = re.compile(r"(?<=\d) (?=(?:[kMGTPEmunpf]?(?:s|B|b|FLOP|Hz|W)(?:/s)?|%|1/s|min|h|day)(?![A-Za-z]))")  # 16 GB/s


def labelled_lines(title: str, text: str, letters: int = TITLE) -> list[str]:
    """Return a text after its label, wrapped; a number stays on one line with its per cent sign.

    Args:
        title: label.
        text: text.
        letters: width of the label column.

    >>> labelled_lines("memory", "12 GB")
    ['  memory       12 GB']
    """
    tied = text.replace(" %", "\u00a0%")
    first, later = f"  {title:<{letters}} ", " " * (letters + 3)
    lines = textwrap.wrap(tied, WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False)
    return [line.replace("\u00a0", " ") for line in lines]


def shell_command(lead: str, words: Sequence[str], settings: Mapping[str, str], note: str) -> str:
    r"""Return a shell command between a lead and a note; if longer than 100 columns, each `--set` is on its own line.

    >>> shell_command("next: ", ["hwsim", "explain", "laptop", "loop"], {"n": "10"}, "   (why)")
    'next: hwsim explain laptop loop --set n=10   (why)'
    >>> settings = {"machine.cpu.memory.bandwidth": "100 GB/s", "n": "1" * 30}
    >>> print(shell_command("next: ", ["hwsim", "explain", "laptop", "loop"], settings, "   (why)"))
    next: hwsim explain laptop loop \
        --set 'machine.cpu.memory.bandwidth=100 GB/s' \
        --set n=111111111111111111111111111111
    """
    parts = [lead + shlex.join(words), *(f"--set {shlex.quote(f'{path}={value}')}" for path, value in settings.items())]
    line = " ".join(parts) + note
    return line if len(line) <= WIDTH else " \\\n        ".join(parts)


def bar(fraction: float) -> str:
    """Return a bar of block characters; a positive fraction fills at least one block, only 1 fills all.

    >>> bar(0.5), bar(0.001), bar(0.999)
    ('██████······', '█···········', '███████████·')
    """
    full = round(fraction * BAR)
    if 0 < fraction < 0.9995:
        full = min(max(full, 1), BAR - 1)
    return "█" * min(full, BAR) + "·" * (BAR - full)


def wrap_lines(text: str, indent: int, *, deeper: int = 0) -> list[str]:
    """Return wrapped lines that keep each number with its unit.

    Args:
        text: text.
        indent: indent of the first line.
        deeper: indent of the further lines; default: indent + 2.
    """
    return wrap_text(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (deeper or indent + 2))


def wrap_text(text: str, width: int, **options: Any) -> list[str]:
    """Return lines of at most `width` characters that keep each number with its unit; `options` are those of `textwrap.wrap`."""
    lines = textwrap.wrap(_JOIN.sub("\u00a0", text), width, break_on_hyphens=False, **options)
    return [line.replace("\u00a0", " ") for line in lines]


def above(mfu: float) -> str:
    """Return the reason for an MFU above 100 %; "" up to 100 %."""
    return "; above 100 %: transformed convolutions compute fewer FLOP than the model counts" if mfu > 1.0 else ""
