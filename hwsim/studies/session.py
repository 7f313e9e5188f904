"""Repeated runs of one machine and workload with different settings, which reuse unchanged parts.

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
    """A session for repeated simulations of a machine and a workload.

    Both files and the files that they use are read once; after editing a file, create another session. `run(settings)` returns
    exactly the result of `hwsim.simulate(machine, workload, set=settings)`, but faster. Not thread-safe.

    Args:
        machine: path, library name or content of a file.
        workload: path, library name or content of a file.
        roots: folders from which files may be read, besides the library; None: any folder.

    Attributes:
        files: parsed files without settings.

    Raises:
        SpecError: a file does not exist, or is not YAML.
    """

    def __init__(self, machine: Source, workload: Source, *, roots: Sequence[Path | str] | None = None) -> None:
        with confined(roots):
            self.files = sources.with_settings(machine, workload, {})
        self._roots = roots
        self._shelf: Shelf = {}

    @contextmanager
    def warm(self) -> Iterator[None]:
        """Context in which code shares the results of earlier runs, and reads only files that the runs may read."""
        with confined(self._roots), shared(self._shelf):
            yield

    def run(self, set: Mapping[str, object] | None = None, **options: Any) -> Run:  # noqa: A002 (the word of the command line)
        """Return the run with these settings; arguments and errors as in `hwsim.simulate`."""
        with self.warm():
            return simulate(*self.files, set=set, **options)

    def shown(self, set: Mapping[str, object] | None = None, **options: Any) -> Run:  # noqa: A002
        """Return the run even if it exceeds the memory (`fits`) or violates an expectation (`met`)."""
        try:
            return self.run(set, **{"expect": False, **options})
        except ExpectationFailed as failed:
            return failed.run
