"""Failures of large jobs: rates by part, restarts and spares, the best checkpoint interval, and the goodput that is left.

load_failures   rates of the library or of a file, by cause, of one GPU or of one node.

job_of   a job on a machine of any shape: seconds between failures, by cause.

goodput   the share of the time that is work, the interval, and the losses by kind, in closed form.

simulate_failures   the same by chance, with seeds: percentiles of the whole time.
"""

from __future__ import annotations

from hwsim.failures.file import Failures, Part, Restart, Spares, Spread, failures_schema, load_failures, read_failures
from hwsim.failures.formulas import best, daly, erlang_b, renewal, spares_for, two_levels, young
from hwsim.failures.goodput import Goodput, Near, NoProgress, Saves, goodput
from hwsim.failures.job import Cause, Job, job_of
from hwsim.failures.simulation import Simulated, simulate_failures

__all__ = [
    "Cause", "Failures", "Goodput", "Job", "Near", "NoProgress", "Part", "Restart", "Saves", "Simulated", "Spares", "Spread",
    "best", "daly", "erlang_b", "failures_schema", "goodput", "job_of", "load_failures", "read_failures", "renewal",
    "simulate_failures", "spares_for", "two_levels", "young",
]  # fmt: skip
