"""Kineto: what PyTorch's profiler would have written of the run, a file for each rank.

`hwsim.views.trace` finds launches, events and synchronisations; `simulate --trace` writes the same for all ranks at once.
"""

from __future__ import annotations

from hwsim.exporters.tools import Exported
from hwsim.importers.recording import Left
from hwsim.views.trace.run import Run
from hwsim.views.trace.write import write_ranks


def files(run: Run) -> Exported:
    """One file for each rank, packed."""
    written = {}
    for rank in range(run.world):
        about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": run.world}}
        written[f"rank{rank}.json.gz"] = write_ranks(run, rank, ".gz", about)
    left = Left("waits between host threads", run.calls.unsaid, 0, "their times are there, but no event says who waits for whom")
    return Exported(written, (left,) if run.calls.unsaid else ())
