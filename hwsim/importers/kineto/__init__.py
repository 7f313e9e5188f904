"""Kineto: the JSON that PyTorch's profiler writes (`export_chrome_trace`, TensorBoard's handler), a file for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hwsim.importers.kineto.trace import read_file
from hwsim.importers.ranks import joined
from hwsim.importers.recording import Recording
from hwsim.importers.text import Report, read_each


def read(files: Sequence[Path], report: Report | None = None) -> Recording:
    """Read the ranks of one run.

    Raises:
        SpecError: a file that is cut, damaged or of another format; two files of a rank, or of different runs.
        OSError: a file that cannot be opened.
    """
    return joined("kineto", read_each(files, read_file, report))
