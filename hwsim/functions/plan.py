"""Find the best machine, node count and parallel plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hwsim.planning import PlanAnswer, Question, read_question
from hwsim.planning import plan as answered
from hwsim.planning.flags import file_with_flags, question_from_flags
from hwsim.planning.search import Progress
from hwsim.spec import Tree, tree_of

Texts = str | Sequence[str]


def plan(
    question: Question | str | Path | Mapping[str, Any] | Tree,
    workload: str | None = None,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    vary: Mapping[str, object] | None = None,
    require: Texts = (),
    minimise: Texts = (),
    maximise: Texts = (),
    also: Texts = (),
    prices: str | None = None,
    provider: str | None = None,
    failures: str | None = None,
    rent: str | None = None,
    period: str | None = None,
    simulate: int | None = None,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> PlanAnswer:
    """Find the best machine, node count and parallel plan that meet requirements.

    Args:
        question: file `plan/1` or its content; or the name or path of a machine, with `workload`.
        workload: name or path of a workload.
        set: paths and values to change in the files.
        vary: search space, such as `{"let.nodes": "16..640", "machine.gpu.use": ["a10", "l4"]}`.
        require: requirements, such as "training p90 at most 60 day".
        minimise: objective to minimise: cost, time, energy, nodes.
        maximise: objective to maximise: tokens/s, samples/s, mfu.
        also: further axes of the Pareto frontier.
        prices: price list that precedes the library's lists.
        provider: only provider whose prices are used.
        failures: failure rates: a file, a library name, or "none".
        rent: "purchase", "on_demand", "1_year", "3_year", "spot" or "block".
        period: time of use, such as "1 year".
        simulate: maximum number of simulated options (0: closed form only).
        journal: file that saves simulations, so that an interrupted search resumes.
        progress: called with the numbers of finished and known simulations.

    Raises:
        SpecError: the question, a machine or a workload has mistakes.
    """
    if isinstance(question, Question):
        return answered(question, journal=journal, progress=progress)
    options = {
        "vary": [f"{path}={_written(values)}" for path, values in (vary or {}).items()],
        "require": _list(require), "minimise": _list(minimise), "maximise": _list(maximise), "also": _list(also),
        "prices": prices, "provider": provider, "failures": failures, "rent": rent, "period": period, "simulate": simulate,
    }  # fmt: skip
    settings = {path: str(value) for path, value in (set or {}).items()}
    if workload is not None:
        tree = question_from_flags(str(question), workload, settings, options)
    elif isinstance(question, Tree | Mapping):
        tree = file_with_flags(question if isinstance(question, Tree) else tree_of(question), settings, options)
    else:
        tree = file_with_flags(str(question), settings, options)
    return answered(read_question(tree), journal=journal, progress=progress)


def _list(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _written(values: object) -> str:
    return ",".join(map(str, values)) if isinstance(values, list | tuple) else str(values)
