"""Answer a question about the deployment of a served model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hwsim.planning.axes import DEPLOYMENT_AXES
from hwsim.planning.deployments.answer import DeploymentAnswer, DeploymentRow
from hwsim.planning.deployments.search import DeploymentOption, DeploymentSearch
from hwsim.planning.deployments.site import sites_of
from hwsim.planning.question import Question
from hwsim.planning.variants import Unbuilt
from hwsim.spec import SpecError


def deploy(
    question: Question, rows: dict[int, Any], keep: Callable[[int, Any], None] | None, progress: Callable[[int, int], None] | None
) -> DeploymentAnswer:
    """Search the deployments of a question.

    Args:
        question: a question that varies `workload.infer`.
        rows: simulations of an earlier run, by their order.
        keep: function that saves a simulation.
        progress: called with the numbers of finished and known simulations.

    Raises:
        SpecError: a machine, the workload or its load cannot be searched, or nothing fits.
    """
    try:
        search = DeploymentSearch(question, sites_of(question), rows=rows, keep=keep, progress=progress)
        search.run()
    except Unbuilt as error:
        raise SpecError.of(None, str(error)) from error
    if not search.options:
        reason = f": {search.unfit[-1][0]}: {search.unfit[-1][1]}" if search.unfit else ""
        raise SpecError.of(None, f"no deployment fits{reason}", "GPUs with more memory, or a smaller `dtype`")
    fast, early = search.frontiers()

    def row(option: DeploymentOption) -> DeploymentRow:
        found = search.numbers(option)
        assert found is not None
        how = "simulation" if option.key in search.simulated else "estimate"
        return DeploymentRow(option, found, how, option.key in fast, option.key in early, search.meets(found))

    best = search.best()
    kept = [option for key, option in search.options.items() if key in search.simulated or key in fast]
    return DeploymentAnswer(
        question=question,
        best=None if best is None else row(best),
        options=tuple(sorted(map(row, kept), key=lambda entry: (entry.numbers.per_user, entry.option.gpus))),
        delay=search.delay,
        axes=tuple(axis for axis in DEPLOYMENT_AXES if axis in (question.varied.deployments or ())),
        counts=search.counts,
        unfit=tuple((str(deployment), reason) for deployment, reason in search.unfit),
        simulations=len(search.simulated),
        open_count=search.open_count,
        is_settled=search.is_settled,
    )
