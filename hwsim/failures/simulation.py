"""Random failures: many simultaneous runs of one job, each with its own failures.

A failure occurs a random time after the previous one. During a restart, it makes the restart begin again. Work continues from the
last valid checkpoint. A replaced node is repaired, and a job without a spare waits for the first node that returns.

**Source** of the shape: times between failures of large machines are Weibull with shapes of 0.7 to 0.8 (Schroeder and Gibson,
"A large-scale study of failures in high-performance computing systems", DSN 2006).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hwsim.failures.goodput import MemoryCopies, spares_of
from hwsim.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hwsim.failures.file import Restart
    from hwsim.failures.job import FailingJob

    Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class _Schedule:
    """Copies after every `unit` seconds of work, every `times`-th one on storage; progress is counted in units.

    Args:
        work: total work (s).
        unit: work between two copies (s).
        times: copies per checkpoint on storage, including it.
        copy: pause for a copy in memory (s).
        write: pause for a checkpoint on storage (s).
        lag: time after the pause until the checkpoint is valid (s).
    """

    work: float
    unit: float
    times: int
    copy: float
    write: float
    lag: float

    @staticmethod
    def of(work_s: float, write_s: float, every_s: float, lag_s: float, near: MemoryCopies | None) -> _Schedule:
        """Return the schedule.

        Raises:
            ValueError: an interval is missing.
        """
        if near is None:
            if not every_s > 0:
                raise ValueError("expected a positive `every_s`, the work between two checkpoints")
            return _Schedule(work_s, every_s, 1, write_s, write_s, lag_s)
        if near.every_s == "auto":
            raise ValueError("expected a number for the work between two copies in memory, got auto")
        times = max(1, round(every_s / near.every_s))
        return _Schedule(work_s, every_s / times, times, near.write_s, write_s, lag_s)

    def needed(self, safe: Floats) -> Floats:
        """Return the time until the end without failures (s); nothing is written at the end."""
        import numpy as np

        left = self.work - safe * self.unit
        last = safe + np.ceil(left / self.unit - 1e-9) - 1
        far = last // self.times - safe // self.times
        time: Floats = left + np.maximum(last - safe - far, 0.0) * self.copy + far * self.write
        return time

    def reached(self, safe: Floats, up: Floats) -> tuple[Floats, Floats]:
        """Return the progress (in memory, on storage), in units, after `up` seconds from the progress `safe`."""
        import numpy as np

        turn = self.unit + self.copy
        period = self.times * self.unit + (self.times - 1) * self.copy + self.write
        inside = safe % self.times
        along = inside * turn + up
        periods = along // period
        rest = along - periods * period
        copies = np.minimum(rest // turn, self.times - 1)
        kept = safe - inside + periods * self.times + copies
        written = safe - inside + np.maximum(0.0, (along - self.lag) // period) * self.times
        return (np.maximum(written, safe) if self.times == 1 else kept), written


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulated runs of one job with random failures.

    Args:
        work_s: work per run (s).
        seconds: total time of each run (s), ascending.
        failures: number of failures of each run, in simulated order.
    """

    work_s: float
    seconds: tuple[float, ...]
    failures: tuple[int, ...]

    @property
    def mean_s(self) -> float:
        """Average total time (s)."""
        return math.fsum(self.seconds) / len(self.seconds)

    @property
    def goodput(self) -> float:
        """Work divided by the average total time."""
        return self.work_s / self.mean_s

    def percentile(self, level: float) -> float:
        """Return the percentile `level` (0 to 100) of the total time (s).

        >>> Simulated(1.0, (1.0, 2.0, 3.0), (0, 0, 0)).percentile(50)
        2.0
        """
        position = level / 100.0 * (len(self.seconds) - 1)
        low = int(position)
        high = min(low + 1, len(self.seconds) - 1)
        return self.seconds[low] + (position - low) * (self.seconds[high] - self.seconds[low])


def simulate_failures(
    job: FailingJob,
    work_s: float,
    *,
    write_s: float,
    every_s: float,
    restart: Restart | None = None,
    lag_s: float = 0.0,
    near: MemoryCopies | None = None,
    runs: int | None = None,
    seed: int | None = None,
) -> Simulated:
    """Simulate runs of `work_s` seconds of work with random failures.

    Args:
        job: failure rates and restart of the job.
        work_s: work per run (s).
        write_s: pause for a checkpoint (s).
        every_s: work between checkpoints (s).
        restart: replaces the restart of the job.
        lag_s: time after the pause until an asynchronous checkpoint is valid (s).
        near: additional copies in memory, with a number for `every_s`.
        runs: replaces the number of runs of the job.
        seed: replaces the seed of the job.

    Raises:
        ValueError: a run does not end, or an interval is missing.
    """
    import numpy as np

    run_count = job.runs if runs is None else runs
    draw = np.random.default_rng(job.seed if seed is None else seed)
    parts = restart or job.restart
    schedule = _Schedule.of(work_s, write_s, every_s, lag_s, near)
    stand_by = spares_of(job)
    causes = [cause for cause in job.causes if cause.rate > 0]
    bounds = np.cumsum([cause.rate / job.rate for cause in causes])[:-1]
    replaced = np.array([cause.replaced for cause in causes], np.bool_)
    far_down = np.array([math.fsum(seconds for _, seconds in parts.phases(replaced=cause.replaced)) for cause in causes])
    loads = dict(parts.phases(replaced=True))["load"]
    near_down = far_down - loads + near.load_s if near is not None else far_down
    scale = job.mtbf_s / math.gamma(1.0 + 1.0 / job.shape)

    clock, safe = np.zeros(run_count), np.zeros(run_count)  # time (s), and progress in units of copies
    stored = np.zeros(run_count)  # progress on storage
    failures, down, ends = np.zeros(run_count, np.int64), np.zeros(run_count), np.full(run_count, -1.0)
    limited = stand_by < job.broken + 20.0 * math.sqrt(job.broken) + 20.0  # with more spares, no run ever waits
    repaired = np.full(
        (stand_by + 1 if limited else 1, run_count), -math.inf
    )  # ring of the times at which the last replaced nodes return (s)
    turn = np.zeros(run_count, np.int64)
    columns = np.arange(run_count)
    max_failures = 1000 + 1000 * math.ceil(work_s / job.mtbf_s)
    while (running := ends < 0).any():
        if failures.max(initial=0) > max_failures:
            raise ValueError(f"a run did not end within {max_failures:,} failures")
        stretch = scale * draw.weibull(job.shape, run_count)
        up = stretch - down
        needed = schedule.needed(safe)
        done = running & (up >= needed)
        ends[done] = (clock + down + needed)[done]
        going = running & ~done
        kept, written = schedule.reached(safe, np.maximum(up, 0.0))
        survive = draw.random(run_count) < near.survives if near is not None else np.zeros(run_count, np.bool_)
        # progress in surviving copies, or on storage
        after = np.where(survive, kept, np.maximum(stored, written)) if near is not None else kept
        safe = np.where(going, after, safe)
        stored = np.where(going, np.maximum(stored, written), stored)
        clock = np.where(going, clock + stretch, clock)
        failures += going
        cause = np.searchsorted(bounds, draw.random(run_count), side="right")
        down = np.where(survive, near_down[cause], far_down[cause])
        away = going & replaced[cause]
        if limited and away.any():
            repaired[turn[away], columns[away]] = clock[away] + job.spares.repair
            turn[away] = (turn[away] + 1) % (stand_by + 1)
            oldest = repaired[turn, columns]  # return of the oldest of the last `stand_by + 1` replaced nodes
            clock = clock + np.where(away, np.maximum(0.0, oldest - clock), 0.0)
    return Simulated(work_s, tuple(np.sort(ends).tolist()), tuple(failures.tolist()))
