"""Write a run as Kineto traces, in the format of the PyTorch profiler, one file per rank.

`hwsim.views.trace` finds launches, events and synchronizations; `simulate --trace` writes the same events of all ranks in one
file.
"""

from __future__ import annotations

from hwsim.exporters.tools import Exported
from hwsim.importers.recording import OmittedEvents
from hwsim.views.trace.run import TracedRun
from hwsim.views.trace.write import write_ranks


def files(run: TracedRun) -> Exported:
    """Return one compressed file per rank."""
    written = {}
    for rank in range(run.world):
        about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": run.world}}
        written[f"rank{rank}.json.gz"] = write_ranks(run, rank, ".gz", about)
    left = OmittedEvents("waits between host threads", run.calls.unsaid, 0, "the times are included, but not the dependencies")
    return Exported(written, (left,) if run.calls.unsaid else ())
