"""Which machine, how many, at what price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hwsim.planning import Answer, Question, read_question
from hwsim.planning import plan as answered
from hwsim.planning.flags import asked, over
from hwsim.planning.searching import Progress
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
) -> Answer:
    """Find the best machine, count and parallel plan: the best options, the frontier, and why not the others.

    Args:
        question: a file `plan/1`, or what it would say; or the name or path of a machine, with a `workload`.
        set: paths and values to change in the files.
        vary: what may vary, `{"let.nodes": "16..640", "machine.gpu.use": ["a10", "l4"]}`.
        require: what must hold, "training p90 at most 60 day"; also: further axes of the frontier.
        minimise, maximise: what is to be small (cost, time, energy, nodes) or large (tokens/s, samples/s, mfu).
        prices: a list of prices of your own; provider: whose prices alone are taken.
        failures: rates of failures, of a file or the library, or "none".
        rent: "purchase", "on_demand" or "reserved"; period: how long machines are used, "1 year".
        simulate: most options near the best that are simulated (0: closed forms alone).
        journal: a file that keeps simulations, so that a run that was ended goes on from there.
        progress: called with the simulations done and to do.

    Raises:
        SpecError: mistakes of the question, of its machines or of its workloads.
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
        tree = asked(str(question), workload, settings, options)
    elif isinstance(question, Tree | Mapping):
        tree = over(question if isinstance(question, Tree) else tree_of(question), settings, options)
    else:
        tree = over(str(question), settings, options)
    return answered(read_question(tree), journal=journal, progress=progress)


def _list(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


def _written(values: object) -> str:
    return ",".join(map(str, values)) if isinstance(values, list | tuple) else str(values)
