"""Intervals by the critical path and by two more runs, beside 200 samples of every unsure number; and what they cost.

    python benchmarks/intervals.py [SAMPLES]

For each workload of the library that names its machine: ln(end / sampled end) at both ends, and CPU time over that of the run.
Samples draw every number from its own spread, those that are shared together; a run's own error is added to both.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import hwsim
from hwsim import engine
from hwsim.engine.interval_limits import limits_by_runs, scale_times, spreads
from hwsim.results.error_weights import weights_of
from hwsim.results.interval import Interval, interval

WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"
LARGEST = 5_000  # ops of a run that is sampled


def sampled(run: hwsim.Run, samples: int) -> tuple[float, float]:
    """The 5 and the 95 % point of the makespan over the run's, as logarithms."""
    graph, rng = run.timeline.flat.graph, np.random.default_rng(0)
    sigma = spreads(graph)
    sigma |= {part.doubt: math.sqrt(part.variance) / part.time_share for part in path(run).parts}  # of all its kernels together
    logs = []
    for _ in range(samples):
        factors = {key: math.exp(rng.normal(0.0, spread)) for key, spread in sigma.items()}
        own = rng.normal(0.0, run.interval.own)
        logs.append(math.log(engine.simulate(scale_times(graph, factors)).makespan / run.makespan_s) + own)
    return float(np.quantile(logs, 0.05)), float(np.quantile(logs, 0.95))


def path(run: hwsim.Run) -> Interval:
    """The interval along the critical path alone, composed of its parts."""
    return interval(weights_of(run.timeline), value=run.makespan_s)


def workloads() -> Iterator[tuple[str, str]]:
    """(machine, workload) of the library."""
    for file in sorted(WORKLOADS.rglob("*.yaml")):
        machine = re.search(r"machine: *([\w./-]+)", file.read_text(encoding="utf-8"))
        if machine is not None and "frameworks" not in file.parts and "models" not in file.parts:
            yield machine[1], str(file)


def main() -> None:
    """Print a row for each workload, and how many are within 0.05 at both ends."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rows = []
    for machine, workload in workloads():
        begin = time.process_time()
        run = hwsim.simulate(machine, workload, expect=False)
        took = time.process_time() - begin
        if run.serving or run.changes or len(run.timeline) > LARGEST or path(run).half < 1e-4:
            continue
        begin = time.process_time()
        along = path(run)
        cost = time.process_time() - begin
        begin = time.process_time()
        ends = limits_by_runs(run.timeline, along)
        more = time.process_time() - begin
        low, high = sampled(run, samples)
        off = [max(abs(-one.below - low), abs(one.above - high)) for one in (along, ends)]
        rows.append((*off, cost / took, more / took))
        print(
            f"{Path(workload).stem:26} sampled {math.exp(low) - 1:+6.1%} {math.exp(high) - 1:+6.1%}"
            f"  path {-along.below:+.3f} {along.above:+.3f}  runs {-ends.below:+.3f} {ends.above:+.3f}"
            f"  off {off[0]:.3f} {off[1]:.3f}  cost {cost / took:.0%} {more / took:.0%} of {1e3 * took:.0f} ms"
        )
    for name, column in (("path", 0), ("two runs", 1)):
        off = [row[column] for row in rows]
        within = sum(one <= 0.05 for one in off)
        print(f"{name}: within 0.05 on {within} of {len(off)}, median {statistics.median(off):.3f}, worst {max(off):.3f}")
    costs = [statistics.median(row[column] for row in rows) for column in (2, 3)]
    print(f"cost over the run's, median: path {costs[0]:.1%}, two runs {costs[1]:.0%}")


if __name__ == "__main__":
    main()
