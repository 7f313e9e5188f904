"""`hwsim.import_run`: replay a run that another tool recorded, also on another machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hwsim.api import Progress
from hwsim.functions.estimate_cases import OptionError
from hwsim.prepare import load_machine
from hwsim.records import dataclass
from hwsim.spec import SpecError, did_you_mean
from hwsim.views.kit.answer_forms import NotebookAnswer

if TYPE_CHECKING:
    from hwsim.importers.answers import Prediction
    from hwsim.importers.findings import Findings
    from hwsim.importers.recording import Recording
    from hwsim.importers.replay import Mode, RecordingReplay


@dataclass(frozen=True, slots=True)
class ReplayElsewhere:
    """A replay on another machine, with its report."""

    replay: RecordingReplay
    answer: Prediction


@dataclass(frozen=True, slots=True)
class ImportedRun(NotebookAnswer):
    """A recorded run; tables: ranks, replay.steps, replay.unexplained, replay.unmapped.

    Args:
        recording: parsed recording.
        findings: its replay, and the time that no rule explains.
        there: its replay on another machine; None if there is no other machine.
        gpu_times: factor on the time of all GPU ops.
        by_name: factors on the time of GPU ops with a text in their name.
    """

    TABLE: ClassVar[str] = "ranks"

    recording: Recording
    findings: Findings
    there: ReplayElsewhere | None = None
    gpu_times: float = 1.0
    by_name: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        from hwsim.importers import answers, report, say
        from hwsim.results.invariants import checked_text

        if self.there is None:
            lines = [*report.text(self.findings), "", *say.text(self.recording), *report.warnings(self.findings)]
        else:
            notes = report.warnings(self.findings, self.there.answer.assumed)
            lines = [*answers.text(self.there.answer), "", *report.validity(self.findings), *notes]
        return checked_text("\n".join([*lines, ""]))

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: import/2`."""
        from hwsim.importers import answers, report, say

        more = {} if self.there is None else {"predicted": answers.as_dict(self.there.answer)}
        return say.as_dict(self.recording) | {"replay": report.as_dict(self.findings)} | more

    @property
    def replay(self) -> RecordingReplay:
        """Replayed step, on the target machine if one is given."""
        return self.findings.replay if self.there is None else self.there.replay

    def save(self, path: str | Path) -> Path:
        """Write the step as an op graph (.npz), which `simulate`, `explain`, `compare` and `export` take as a workload."""
        from hwsim.importers.saved import save

        return save(self.replay, Path(path), self.replay.scaled(self.gpu_times, dict(self.by_name)))


def import_run(
    tool: str,
    *files: str | Path,
    step: str = "all",
    mode: Mode = "rules",
    gpu_times: float | Mapping[str, float] = 1.0,
    machine: str | Path | None = None,
    ranks: int | None = None,
    progress: Progress | None = None,
) -> ImportedRun:
    """Replay a recording of another tool by rules (`import` is a Python keyword).

    Args:
        tool: format: kineto, nsys or chakra.
        files: one file per rank, or their folder.
        step: number N of one step of the run (ProfilerStep#N), or "all".
        mode: "rules": GPU ops start as soon as their dependencies allow; "exact": as recorded.
        gpu_times: factor on the time of GPU ops: of all, or by a text in their name.
        machine: machine on which the times of operators are predicted from their shapes.
        ranks: number of GPUs on `machine`; additional ones are data parallel.
        progress: called with the numbers of bytes read and in total.

    Raises:
        SpecError: a file is truncated, damaged or of another format, or options exclude each other.
    """
    from hwsim.importers.findings import find
    from hwsim.importers.formats import FORMATS, files_of, read
    from hwsim.importers.replay import explain
    from hwsim.importers.steps import one_step

    if tool not in FORMATS:
        raise SpecError.of(None, f"unknown format '{tool}'", did_you_mean(tool, FORMATS))
    recording = read(tool, files_of([Path(file) for file in files], tool), progress)
    if step != "all":
        try:
            recording = one_step(recording, step)
        except ValueError as error:
            raise OptionError(str(error), "step") from None
    replay = explain(recording, mode)
    by_name = {name: float(time) for name, time in (gpu_times if isinstance(gpu_times, Mapping) else {"": gpu_times}).items()}
    scale = by_name.pop("", 1.0)
    _refuse_nameless(replay, by_name)
    findings = find(replay, gpu_times=scale, by_name=by_name)
    predicted = _elsewhere(replay, machine, ranks)
    return ImportedRun(recording, findings, predicted, scale, tuple(by_name.items()))


def _refuse_nameless(replay: RecordingReplay, by_name: Mapping[str, float]) -> None:
    """Raise OptionError for a text that occurs in no GPU op's name."""
    for text in by_name:
        if replay.named(text).any():
            continue
        labels = replay.graph.labels
        names = sorted({labels[number].name for number in replay.graph.blocks[0].label[replay.is_gpu].tolist()})
        alike = [name for name in names if text.lower() in name.lower()]
        words = [word for name in names for word in re.findall(r"[A-Za-z]{3,}", name)]
        near = did_you_mean(text, words) if words else None
        some = (
            f"the {len(names)} names are such as {', '.join(name[:60] for name in names[:3])}" if names else "it has no GPU ops"
        )
        hint = f"capitals count: '{alike[0][:60]}' has it" if alike else near if near and near.startswith("did") else some
        raise OptionError(f"no GPU op has '{text}' in its name; {hint}", "gpu-times")


def _elsewhere(replay: RecordingReplay, machine: str | Path | None, ranks: int | None) -> ReplayElsewhere | None:
    """Return the replay on another machine; None if no machine is given.

    Raises:
        OptionError: an option requires a machine, or the recording does not support it.
    """
    if machine is None:
        if ranks is not None:
            raise OptionError("requires predicted durations: add --machine", "ranks")
        return None
    from hwsim.importers.answers import answer
    from hwsim.importers.predicting import predict
    from hwsim.importers.rank_placement import WrongMachine
    from hwsim.importers.scaling import CannotScale, scaled

    assumed: tuple[str, ...] = ()
    try:
        if ranks is not None:
            more = scaled(replay, ranks)
            replay, assumed = more.replay, more.assumed
    except CannotScale as error:
        raise OptionError(str(error), "ranks") from None
    try:
        there = load_machine(machine)
        for number in there.unsure:
            raise SpecError.of(number.place, "an import does not report the uncertainty of this number", "omit its uncertainty")
        prediction = predict(replay, there)
    except WrongMachine as error:
        raise OptionError(str(error), "machine") from None
    prediction = replace(prediction, assumed=(*assumed, *prediction.assumed))
    return ReplayElsewhere(replace(replay, graph=prediction.graph), answer(prediction))
