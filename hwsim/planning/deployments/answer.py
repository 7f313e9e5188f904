"""The answer of a search for deployments: the best one, the frontier, and what was searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from hwsim.planning.answer import values_text
from hwsim.planning.deployments.search import RULES, DeploymentNumbers, DeploymentOption, miss
from hwsim.planning.deployments.space import NOT_SEARCHED
from hwsim.planning.question import Question
from hwsim.planning.requirements import MEASURES
from hwsim.records import dataclass
from hwsim.views.frontier.draw import Cloud, Scatter, ScatterAxis
from hwsim.views.kit.answer_forms import FigureAnswer

PER_GPU: Final = "tokens/s per GPU"
PER_USER: Final = "tokens/s per user"


@dataclass(frozen=True, slots=True)
class DeploymentRow:
    """An option with its numbers.

    Args:
        how: "simulation" or "estimate".
        is_front: on the frontier of throughput and speed of a user.
        is_delay_front: on the frontier of throughput and TTFT.
        meets: meets all requirements.
    """

    option: DeploymentOption
    numbers: DeploymentNumbers
    how: str
    is_front: bool
    is_delay_front: bool
    meets: bool


@dataclass(frozen=True)
class DeploymentAnswer(FigureAnswer):
    """An answer that lists the deployments on the frontier, and the one with the fewest GPUs that meets the requirements.

    Args:
        best: deployment with the fewest GPUs that meets the requirements; without requirements and with users instead of an
            arrival rate, that with the most tokens/s per GPU; None if none meets them.
        options: simulated options and the frontier, in the order of tokens/s per user.
        delay: measure of the time to first token.
        counts: combinations by the first of `RULES` that applies to them.
        unfit: (deployment, reason) of the deployments that do not fit.
        open_count: estimates that could extend the frontier and were not simulated.
        is_settled: the simulations sufficed to find the fewest GPUs that meet the requirements.
    """

    question: Question
    best: DeploymentRow | None
    options: tuple[DeploymentRow, ...]
    delay: str
    axes: tuple[str, ...]
    counts: Counter[str]
    unfit: tuple[tuple[str, str], ...]
    simulations: int
    open_count: int
    is_settled: bool
    TABLE: ClassVar = "options"

    @property
    def frontier(self) -> tuple[DeploymentRow, ...]:
        """Options that no other beats in tokens/s per GPU and in tokens/s per user, or in TTFT."""
        return tuple(row for row in self.options if row.is_front or row.is_delay_front)

    @property
    def nearest(self) -> DeploymentRow | None:
        """Option that misses the requirements by the least."""

        def excess(row: DeploymentRow) -> float:
            return max((miss(limit, row.numbers) for limit in self.question.requirements), default=0.0)

        return min(self.options, key=excess, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: deployments/1`."""
        cut = {rule.replace(" ", "_"): self.counts[rule] for rule in RULES}
        return {
            "hwsim": "deployments/1",
            "name": self.question.keys.name,
            "require": [requirement.text for requirement in self.question.requirements],
            "met": self.best is not None,
            "searched": {"axes": list(self.axes), "combinations": self.counts.total(), **cut, "not_searched": NOT_SEARCHED},
            "not_simulated": self.open_count,
            "settled": self.is_settled,
            "best": None if self.best is None else _row(self.best),
            "options": [_row(row) for row in self.options],
            "do_not_fit": [{"deployment": text, "reason": reason} for text, reason in self.unfit],
            "compare": dict(self.question.keys.compare),
        }

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Return the figure of the frontier, as chunks of a file."""
        from hwsim.views.frontier.draw import render

        return render(self.scatter(), suffix)

    def scatter(self) -> Scatter:
        """Return the options as points: tokens/s per GPU over tokens/s per user."""
        clouds: dict[str, list[tuple[float, float, bool]]] = {}
        for row in self.options:
            name = values_text(row.option.site.point.shown)
            clouds.setdefault(name, []).append((row.numbers.per_user, row.numbers.per_gpu, row.is_front))
        most = max((row.numbers.per_gpu for row in self.options), default=0.0)
        return Scatter(
            title=f"Up to {most:,.0f} tokens/s per GPU; faster answers cost throughput",
            below=self.heading,
            across=ScatterAxis(PER_USER, "1"),
            up=ScatterAxis(PER_GPU, "1"),
            legend="" if len(clouds) < 2 else "options",
            clouds=tuple(Cloud(name, tuple(points)) for name, points in clouds.items()),
        )

    @property
    def heading(self) -> str:
        """Name of the question, else of its workload and machines."""
        site = self.options[0].option.site if self.options else None
        name = None if site is None else site.workload.text("name")
        machines = ", ".join(name or "the machine" for name, _ in self.question.machines)
        return self.question.keys.name or f"{name or 'the workload'} on {machines}"

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page: the summary, the frontier as a figure, and the options."""
        from hwsim.planning.deployments.text import page
        from hwsim.views.kit.file_output import write
        from hwsim.views.report.page import written

        return write(path, written(page(self)))

    def __str__(self) -> str:
        return self.summary()

    def summary(self, *, verbose: bool = False) -> str:
        """Return the text that `hwsim plan` prints; `verbose` corresponds to -v."""
        from hwsim.planning.deployments.text import text

        return text(self, verbose=verbose)


def _row(row: DeploymentRow) -> dict[str, Any]:
    option, found = row.option, row.numbers
    return {
        "values": dict(option.site.point.shown),
        "deployment": str(option.deployment),
        "infer": dict(settings(option)),
        "replicas": option.replicas,
        "gpus": option.gpus,
        "users_per_replica": option.site.users_of(option.replicas) or None,
        "requests_per_s_per_replica": option.site.per_s / option.replicas or None,
        "tokens_per_s_per_gpu": found.per_gpu,
        "tokens_per_s_per_user": found.per_user,
        **{f"{name}_s": value for name, value in found.values.items()},
        "kv_cache_peak": found.kv,
        "ranges": {name: {"low": low, "high": high} for name, (low, high) in found.ranges.items()},
        "how": row.how,
        "frontier": row.is_front,
        "ttft_frontier": row.is_delay_front,
        "meets": row.meets,
    }


def settings(option: DeploymentOption) -> Iterator[tuple[str, object]]:
    """Yield the keys of `infer:` that make a workload one unit of an option."""
    tree = option.deployment.infer(option.site.space.infer, option.site.gpus)
    for key, value in tree.items():
        if key in ("parallel", "device", "split", "server", "dtype"):
            yield key, value.plain()


def between(row: DeploymentRow, measure: str, value: float) -> tuple[float, float]:
    """Return the 90 % interval of a measure of a row (`tpot_p95`: that of `tpot`); the value itself without one."""
    low, high = row.numbers.ranges.get(measure.partition("_")[0], (1.0, 1.0))
    return value * low, value * high


def shown(measure: str, value: float) -> str:
    """Return a latency as text."""
    return MEASURES[measure].shown(value)
