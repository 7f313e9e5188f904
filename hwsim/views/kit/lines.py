"""Text of 100 columns: lines under a title, wrapped lines, and bars of blocks."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

WIDTH: Final = 100
TITLE: Final = 12  # letters
LABEL: Final = 14  # letters of the labels of a summary
BAR: Final = 12  # blocks
_JOIN: Final = re.compile(r"(?<=\d) (?=(?:[kMGTPEmunpf]?(?:s|B|b|FLOP|Hz|W)(?:/s)?|%|1/s|min|h|day)(?![A-Za-z]))")  # 16 GB/s


def titled(title: str, text: str, letters: int = TITLE) -> list[str]:
    """A text, wrapped, after its title; letters: width of the title. A number stays on one line with its per cent sign.

    >>> titled("memory", "12 GB")
    ['  memory       12 GB']
    """
    tied = text.replace(" %", "\u00a0%")
    first, later = f"  {title:<{letters}} ", " " * (letters + 3)
    lines = textwrap.wrap(tied, WIDTH, initial_indent=first, subsequent_indent=later, break_long_words=False)
    return [line.replace("\u00a0", " ") for line in lines]


def shell_command(lead: str, words: Sequence[str], settings: Mapping[str, str], note: str) -> str:
    r"""A shell command between a lead and a note; if the line is longer than 100 columns, each `--set` on a line of its own.

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
    """A bar of blocks; a positive fraction shows, and only 1 fills it.

    >>> bar(0.5), bar(0.001), bar(0.999)
    ('██████······', '█···········', '███████████·')
    """
    full = round(fraction * BAR)
    if 0 < fraction < 0.9995:
        full = min(max(full, 1), BAR - 1)
    return "█" * min(full, BAR) + "·" * (BAR - full)


def wrapped(text: str, indent: int, *, deeper: int = 0) -> list[str]:
    """Lines that keep each number together with its unit.

    Args:
        deeper: indent of the second and later lines; 0 for two more than the first.
    """
    kept, further = _JOIN.sub("\u00a0", text), " " * (deeper or indent + 2)
    lines = textwrap.wrap(kept, WIDTH, initial_indent=" " * indent, subsequent_indent=further, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def above(mfu: float) -> str:
    """Why a share of the peak is above 100 %; "" where it is not."""
    return "; above 100 %: transformed convolutions compute fewer FLOP than the model counts" if mfu > 1.0 else ""
