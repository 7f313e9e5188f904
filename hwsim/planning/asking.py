"""A question answered: read, searched, and put in order. A journal keeps simulations, so that a run that was ended goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from hwsim.failures import load_failures
from hwsim.planning.answer import Answer
from hwsim.planning.choosing import frontier, order
from hwsim.planning.judging import answered
from hwsim.planning.options import Option
from hwsim.planning.outlay import Outlay
from hwsim.planning.question import Question, read_question
from hwsim.planning.reasons import Rejected
from hwsim.planning.screening import Screen
from hwsim.planning.searching import Progress, Searching, kind_of, kind_path
from hwsim.planning.variants import Variants, lost_paths
from hwsim.spec import Mistakes, Tree, resolve
from hwsim.studies.journal import Journal
from hwsim.version import __version__


def plan(
    question: Question | str | Path | Mapping[str, Any] | Tree,
    *,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Answer a question: the best options, the frontier, and why not the others.

    Args:
        question: a file `plan/1`, or what it would say.
        journal: a file that keeps simulations, so that a run that was ended goes on from there.

    Raises:
        SpecError: mistakes of the question, of its machines or of its workloads; the journal is of something else.
    """
    read = question if isinstance(question, Question) else read_question(question)
    lost_paths(read).raise_if_any()
    began = time.process_time()
    variants = Variants(read)
    screen = Screen(read, variants, Outlay.of(read), _failures(read))
    searching = Searching(read, screen, progress=progress)
    if journal is None:
        searching.run()
    else:
        with Journal(journal, {"study": fingerprint(read), "version": __version__}) as kept:
            searching.rows = {number: row["plan"] for number, row in kept.done.items() if "plan" in row}
            searching.keep = lambda number, row: kept.add(number, {"plan": row})
            searching.run()
    return _answer(searching, time.process_time() - began)


def _failures(question: Question) -> Any:
    """Rates of failures; None if the question leaves them out, or nothing trains."""
    if question.keys.failures == "none":
        return None

    return load_failures(question.keys.failures, question.folder)


def _answer(searching: Searching, seconds: float) -> Answer:
    question = searching.question
    options = {number: each if each.how == "machine" else answered(question, each) for number, each in searching.options.items()}
    feasible = [option for option in options.values() if option.is_feasible and option.how != "machine"]
    simulated_ones = [each for each in feasible if each.how == "simulation"]
    ordered = order(question, feasible)
    if simulated_ones:  # the best is simulated: estimates stand behind those that are
        first = order(question, simulated_ones)
        ordered = first + [each for each in ordered if each.how != "simulation"]
    best = ordered[0] if ordered else None
    rejected = [Rejected(number, each.point.shown, each.reasons) for number, each in options.items() if each.reasons]
    path = kind_path(question)
    kinds: dict[object, Option] = {}
    if path is not None:
        for each in ordered:
            kinds.setdefault(kind_of(each, path), each)
    return Answer(
        question=question,
        best=best,
        options=tuple(ordered),
        frontier=frontier(question, ordered),
        of_each=tuple(kinds.values()),
        rejected=tuple(rejected),
        untried=tuple(each for each in options.values() if each.how == "machine" and each.is_feasible),
        points=len(options),
        plans=sum(each.tried for each in options.values()),  # integers
        simulations=searching.simulations,
        ratios={} if best is None else {each.point.number: searching.against(each, best) for each in ordered[1:]},
        seconds=seconds,
        outlay=searching.screen.outlay,
        left={axis: needed for each in options.values() for axis, needed in each.left.items()},
        otherwise=None if best is None else searching.otherwise(best),
    )


def fingerprint(question: Question) -> str:
    """Hash of a question and of the files behind it."""
    mistakes = Mistakes()
    parts: list[Any] = [repr(question.keys), repr(question.varied)]
    parts += [(name, resolve(tree, mistakes, kind="machine").plain()) for name, tree in question.machines]
    parts += [(name, resolve(tree, mistakes, kind="workload").plain()) for name, tree in question.workloads.items()]
    return sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:16]
