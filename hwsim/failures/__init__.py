"""Failures of large jobs: failure rates by part, restarts and spares, the best checkpoint interval, and the goodput.

load_failures   failure rates per GPU or node, by cause, from the library or a file.

job_of   a job on a machine: its time between failures, by cause.

goodput   share of time spent on work, the checkpoint interval, and the losses by kind, in closed form.

simulate_failures   random runs of the job: percentiles of the total time.
"""

from __future__ import annotations

from hwsim.failures.file import Failures, Restart, failures_schema, load_failures, read_failures
from hwsim.failures.formulas import best, daly, renewal, young
from hwsim.failures.goodput import CheckpointSchedule, Goodput, MemoryCopies, NoProgress, goodput
from hwsim.failures.job import FailingJob, job_of
from hwsim.failures.simulation import Simulated, simulate_failures

__all__ = [
    "CheckpointSchedule",
    "FailingJob",
    "Failures",
    "Goodput",
    "MemoryCopies",
    "NoProgress",
    "Restart",
    "Simulated",
    "best",
    "daly",
    "failures_schema",
    "goodput",
    "job_of",
    "load_failures",
    "read_failures",
    "renewal",
    "simulate_failures",
    "young",
]  # fmt: skip
