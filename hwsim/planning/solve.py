"""Answer a question: parse it, search, and sort the options. With a journal, an interrupted search resumes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from hwsim.failures import load_failures
from hwsim.planning.answer import PlanAnswer
from hwsim.planning.deployments.answer import DeploymentAnswer
from hwsim.planning.deployments.solve import deploy
from hwsim.planning.options import PlanOption
from hwsim.planning.ordering import frontier, sort_options
from hwsim.planning.outlay import Outlay
from hwsim.planning.question import Question, read_question
from hwsim.planning.reasons import Rejected
from hwsim.planning.requirement_checks import with_unknown_reasons
from hwsim.planning.screen import Screening
from hwsim.planning.search import PlanSearch, Progress, kind_of, kind_path
from hwsim.planning.variants import Variants, lost_paths
from hwsim.spec import Mistakes, SpecError, Tree, resolve
from hwsim.spec.memo import with_memo
from hwsim.studies.journal import Journal
from hwsim.version import __version__


@with_memo
def plan(
    question: Question | str | Path | Mapping[str, Any] | Tree,
    *,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> PlanAnswer:
    """Answer a question: the best options, the Pareto frontier, and the reasons of rejected options.

    Args:
        question: file `plan/1`, or its content.
        journal: file that saves simulations, so that an interrupted search resumes.
        progress: called with the numbers of finished and known simulations.

    Raises:
        SpecError: the question, a machine or a workload has mistakes, or the journal belongs to another question.
    """
    read = question if isinstance(question, Question) else read_question(question)
    lost_paths(read).raise_if_any()
    began = time.process_time()
    if read.varied.deployments is not None:
        raise SpecError.of(
            None, "`workload.infer: auto` has an answer of its own", "hwsim plan, or hwsim.planning.plan_deployment"
        )
    variants = Variants(read)
    screen = Screening(read, variants, Outlay.of(read), _failures(read))
    searching = PlanSearch(read, screen, progress=progress)
    if journal is None:
        searching.run()
    else:
        with Journal(journal, {"study": fingerprint(read), "version": __version__}) as kept:
            searching.rows = {number: row["plan"] for number, row in kept.done.items() if "plan" in row}
            searching.keep = lambda number, row: kept.add(number, {"plan": row})
            searching.run()
    return _answer(searching, time.process_time() - began)


@with_memo
def plan_deployment(
    question: Question, *, journal: str | Path | None = None, progress: Progress | None = None
) -> DeploymentAnswer:
    """Answer a question that varies `workload.infer`: the deployment with the fewest GPUs, and the frontier; as `plan`."""
    if journal is None:
        return deploy(question, {}, None, progress)
    with Journal(journal, {"study": fingerprint(question), "version": __version__}) as kept:
        rows = {number: dict(row["deployment"]) for number, row in kept.done.items() if "deployment" in row}
        return deploy(question, rows, lambda number, row: kept.add(number, {"deployment": row}), progress)


def _failures(question: Question) -> Any:
    """Return the failure rates; None for `failures: none`."""
    if question.keys.failures == "none":
        return None

    return load_failures(question.keys.failures, question.folder)


def _answer(searching: PlanSearch, seconds: float) -> PlanAnswer:
    question = searching.question
    options = {
        number: choice if choice.how == "machine" else with_unknown_reasons(question, choice)
        for number, choice in searching.options.items()
    }
    feasible = [option for option in options.values() if option.is_feasible and option.how != "machine"]
    simulated_ones = [option for option in feasible if option.how == "simulation"]
    ordered = sort_options(question, feasible)
    if simulated_ones:  # the best is simulated: estimates stand behind those that are
        first = sort_options(question, simulated_ones)
        ordered = first + [option for option in ordered if option.how != "simulation"]
    best = ordered[0] if ordered else None
    rejected = [Rejected(number, pick.point.shown, pick.reasons) for number, pick in options.items() if pick.reasons]
    path = kind_path(question)
    kinds: dict[object, PlanOption] = {}
    if path is not None:
        for option in ordered:
            kinds.setdefault(kind_of(option, path), option)
    return PlanAnswer(
        question=question,
        best=best,
        options=tuple(ordered),
        frontier=frontier(question, ordered),
        of_each=tuple(kinds.values()),
        rejected=tuple(rejected),
        untried=tuple(choice for choice in options.values() if choice.how == "machine" and choice.is_feasible),
        points=len(options),
        searched=sum((choice.searched for choice in options.values()), Counter()),  # integers
        axes=tuple(dict.fromkeys(axis for choice in options.values() for axis in choice.axes)),
        simulations=searching.simulations,
        ratios={} if best is None else {option.point.number: searching.against(option, best) for option in ordered[1:]},
        seconds=seconds,
        outlay=searching.screen.outlay,
        otherwise=None if best is None else searching.otherwise(best),
    )


def fingerprint(question: Question) -> str:
    """Return a hash of a question and its files."""
    mistakes = Mistakes()
    parts: list[Any] = [repr(question.keys), repr(question.varied)]
    parts += [(name, resolve(tree, mistakes, kind="machine").plain()) for name, tree in question.machines]
    parts += [(name, resolve(tree, mistakes, kind="workload").plain()) for name, tree in question.workloads.items()]
    return sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:16]
