"""`hwsim compare` of a simulated run and a recording, or of two recordings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hwsim.cli.compare import ComparedInput
    from hwsim.comparing.recorded.against import AgainstTrace
    from hwsim.comparing.recorded.compared_run import ComparedRun
    from hwsim.importers.recording import Recording


def compare_traces(
    given: Sequence[ComparedInput], settings: Mapping[str, str], no_form: Callable[[Sequence[ComparedInput]], str]
) -> AgainstTrace:
    """Compare traces with a run, a step or other traces.

    Args:
        given: arguments of the command.
        settings: paths and values to change in the files.
        no_form: function that returns the message for an unsupported combination.

    Raises:
        SpecError: a file cannot be read, or has nothing to compare.
    """
    from hwsim.api import simulated
    from hwsim.comparing.recorded import sides
    from hwsim.comparing.recorded.against import against

    traces, steps = ([file for file in given if file.kind == kind] for kind in ("trace", "step"))
    rest = [file for file in given if file.kind not in ("trace", "step")]
    kinds = sorted(file.kind for file in rest)
    files = {file.kind: file.content for file in rest}
    if kinds == ["machine", "workload"] and traces and not steps:
        first, run = _recorded(traces), simulated(files["machine"], files["workload"], set=settings)
        return against(first, sides.of_run(run, sides.turns_of(run, first)))
    if settings:
        raise click.UsageError("--set cannot change a recording, only a machine or a workload")
    if kinds in ([], ["machine"]) and len(steps) == 1 and traces:
        count, graph = sides.saved(steps[0].content)
        run = simulated(files.get("machine", sides.NOWHERE), graph)
        return against(_recorded(traces), sides.of_run(run, count, steps[0].name))
    if not rest and not steps and len(traces) == 2:
        return against(_recorded(traces[:1]), _recorded(traces[1:]))
    raise click.UsageError(no_form(given))


def _recorded(traces: Sequence[ComparedInput]) -> ComparedRun:
    from hwsim.comparing.recorded.sides import of_recording

    return of_recording(_read(traces))


def _read(traces: Sequence[ComparedInput]) -> Recording:
    """Read one recording from several files, one per rank."""
    from hwsim.cli.progress import progress
    from hwsim.importers.formats import files_of, format_of, read
    from hwsim.spec import SpecError

    files = files_of([trace.content for trace in traces])
    formats = {file: format_of(file) for file in files}
    kinds = dict.fromkeys(formats.values())
    if len(kinds) != 1:
        named = ", ".join(f"'{file}' is {formats[file] or 'none'}" for file in files[:3]) or "the folder is empty"
        raise SpecError.of(None, f"expected recordings of one format: {named}", "use one file per rank, or their folder")
    with progress(shown=sys.stderr.isatty(), unit="bytes") as shown:
        return read(next(iter(kinds)), files, shown)
