"""Runs of one machine and workload, one after the other, each with other settings: what a change leaves alone stays.

session = Session("d2l-gpu-workstation", "d2l/copy-overlap")
for rate in (1, 2, 4):
    print(session.run({"machine.links.slot.bandwidth": f"{rate} GB/s"}).makespan_s)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hwsim.api import ExpectationFailed, Run, Source, simulate
from hwsim.spec.confined import confined
from hwsim.spec.memo import Shelf, shared
from hwsim.workload import sources


class Session:
    """A machine and a workload that are simulated again and again.

    Both files, and those that they use, are read once: edit a file, and make another session. `run(settings)` is
    `hwsim.simulate(machine, workload, set=settings)` to the last digit, only sooner. Not for several threads at once.

    Args:
        roots: folders that files may be read from besides the library, these two among them; None: any.

    Attributes:
        files: the trees of both files, nothing set.

    Raises:
        SpecError: a file is not there, or is no YAML.
    """

    def __init__(self, machine: Source, workload: Source, *, roots: Sequence[Path | str] | None = None) -> None:
        with confined(roots):
            self.files = sources.with_settings(machine, workload, {})
        self._roots = roots
        self._shelf: Shelf = {}

    @contextmanager
    def warm(self) -> Iterator[None]:
        """Inside, everything shares what was found for earlier runs, and reads no other files than the runs may."""
        with confined(self._roots), shared(self._shelf):
            yield

    def run(self, set: Mapping[str, object] | None = None, **options: Any) -> Run:  # noqa: A002 (the word of the command line)
        """The run with these settings; arguments and errors as of `hwsim.simulate`."""
        with self.warm():
            return simulate(*self.files, set=set, **options)

    def shown(self, set: Mapping[str, object] | None = None, **options: Any) -> Run:  # noqa: A002
        """The run, even if it does not fit into the memory or does not keep what it expects: `fits`, `met` say so."""
        try:
            return self.run(set, **{"expect": False, **options})
        except ExpectationFailed as failed:
            return failed.run
