"""Explain why a run takes as long as it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hwsim.api import Progress, Run, Source, simulated
from hwsim.spec import SpecError, did_you_mean
from hwsim.spec.memo import with_memo

if TYPE_CHECKING:
    from hwsim.views.explain.explanation import Explanation


@with_memo
def explain(
    machine: Source | Run,
    workload: Source | None = None,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    op: str | None = None,
    what_if: bool | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Explain why a run takes as long as it does, and what would speed it up.

    The `expect:` of the workload is not checked, and a run that exceeds its memory is explained, too.

    Args:
        machine: path, library name or content of a file; or a run, without a workload.
        workload: path, library name or content of a file.
        set: paths and values to change in the files.
        op: name of the ops whose durations are derived (default: those on the critical path).
        what_if: run again with each input twice as good, one at a time (default: for up to 200,000 ops).
        progress: called with the numbers of finished and planned runs.

    Raises:
        SpecError: the files have mistakes, or there is no such op.

    >>> explain("d2l-laptop", "d2l/async-loop", set={"n": 100}).sentences[0]
    '`add` takes 3.00 ms (99 %), a fixed duration.'
    """
    from hwsim.views.explain.explanation import NoSuchOp

    if isinstance(machine, Run):
        if workload is not None or set:
            raise TypeError("`workload` and `set` cannot be combined with a run: explain(run)")
        run = machine
    elif workload is None:
        raise TypeError("explain() requires a machine and a workload, or a run")
    else:
        run = simulated(machine, workload, set=set)
    try:
        return run.explain(op=op, what_if=what_if, progress=progress)
    except NoSuchOp as error:
        raise SpecError.of(None, str(error), did_you_mean(error.name, error.names)) from error
