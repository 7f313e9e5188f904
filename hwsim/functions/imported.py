"""`hwsim.import_run`: a run that another tool recorded, replayed by rules, also on another machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hwsim.api import Progress
from hwsim.functions.estimating import Misused
from hwsim.prepare import load_machine
from hwsim.records import dataclass
from hwsim.spec import SpecError, did_you_mean
from hwsim.views.kit.shown import Shown

if TYPE_CHECKING:
    from hwsim.importers.answers import Answer
    from hwsim.importers.findings import Findings
    from hwsim.importers.recording import Recording
    from hwsim.importers.replay import Mode, Replay


@dataclass(frozen=True, slots=True)
class There:
    """A replay on another machine, and what is said of it."""

    replay: Replay
    answer: Answer


@dataclass(frozen=True, slots=True)
class Imported(Shown):
    """A recorded run; tables: ranks, replay.steps, replay.unexplained, replay.unmapped.

    Args:
        recording: what was read.
        findings: its replay, and what no rule explains.
        there: its replay on another machine, if one was given.
        gpu_times, by_name: factors on the time of GPU ops: of all, and of those with a text in their name.
    """

    TABLE: ClassVar[str] = "ranks"

    recording: Recording
    findings: Findings
    there: There | None = None
    gpu_times: float = 1.0
    by_name: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        from hwsim.importers import answers, report, say
        from hwsim.results.invariants import printed

        if self.there is None:
            lines = [*report.text(self.findings), "", *say.text(self.recording), *report.warnings(self.findings)]
        else:
            notes = report.warnings(self.findings, self.there.answer.assumed)
            lines = [*answers.text(self.there.answer), "", *report.validity(self.findings), *notes]
        return printed("\n".join([*lines, ""]))

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: import/1`."""
        from hwsim.importers import answers, report, say

        more = {} if self.there is None else {"predicted": answers.as_dict(self.there.answer)}
        return say.as_dict(self.recording) | {"replay": report.as_dict(self.findings)} | more

    @property
    def replay(self) -> Replay:
        """The step: on the other machine, if one was given."""
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
) -> Imported:
    """A recording of another tool, replayed by rules; `import` is a word of Python.

    Args:
        tool: kineto, nsys or chakra: whose format it is.
        files: one for each rank, or a folder of them.
        step: one step of the run, ProfilerStep#N, by its number.
        mode: rules: nothing delays a GPU op that no rule explains; exact: every op as recorded.
        gpu_times: how many times as long GPU ops take: all, or by a text in their name.
        machine: predict the durations of operators from their shapes there.
        ranks: GPUs in all, the new ones data parallel; on `machine`.
        progress: called with the bytes read and all of them.

    Raises:
        SpecError: a file that is cut, damaged or of another format, or an option that does not go with the others.
    """
    from hwsim.importers.findings import find
    from hwsim.importers.formats import FORMATS, files_of, read
    from hwsim.importers.replay import explain
    from hwsim.importers.steps import one_step

    if tool not in FORMATS:
        raise SpecError.of(None, f"there is no format '{tool}'", did_you_mean(tool, FORMATS))
    recording = read(tool, files_of([Path(file) for file in files], tool), progress)
    if step != "all":
        try:
            recording = one_step(recording, step)
        except ValueError as error:
            raise Misused(str(error), "step") from None
    replay = explain(recording, mode)
    by_name = {name: float(each) for name, each in (gpu_times if isinstance(gpu_times, Mapping) else {"": gpu_times}).items()}
    scale = by_name.pop("", 1.0)
    _refuse_nameless(replay, by_name)
    findings = find(replay, gpu_times=scale, by_name=by_name)
    predicted = _elsewhere(replay, machine, ranks)
    return Imported(recording, findings, predicted, scale, tuple(by_name.items()))


def _refuse_nameless(replay: Replay, by_name: Mapping[str, float]) -> None:
    """Raise for a text that no GPU op has in its name."""
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
        raise Misused(f"no GPU op of the run has '{text}' in its name; {hint}", "gpu-times")


def _elsewhere(replay: Replay, machine: str | Path | None, ranks: int | None) -> There | None:
    """The replay on another machine; None without one.

    Raises:
        Misused: an option needs a machine, or cannot be had of this recording.
    """
    if machine is None:
        if ranks is not None:
            raise Misused("durations of a machine are needed: add --machine", "ranks")
        return None
    from hwsim.importers.answers import answer
    from hwsim.importers.placing import WrongMachine
    from hwsim.importers.predicting import predict
    from hwsim.importers.scaling import CannotScale, scaled

    assumed: tuple[str, ...] = ()
    try:
        if ranks is not None:
            more = scaled(replay, ranks)
            replay, assumed = more.replay, more.assumed
    except CannotScale as error:
        raise Misused(str(error), "ranks") from None
    try:
        there = load_machine(machine)
        for number in there.unsure:
            raise SpecError.of(number.place, "no answer of an import carries how unsure this number is", "leave out its doubt")
        prediction = predict(replay, there)
    except WrongMachine as error:
        raise Misused(str(error), "machine") from None
    prediction = replace(prediction, assumed=(*assumed, *prediction.assumed))
    return There(replace(replay, graph=prediction.graph), answer(prediction))
