"""The functions `hwsim.record` and `hwsim.calibrate`, which correspond to `hwsim record` and `hwsim calibrate run`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def record(
    script: str | Path,
    output: str | Path | None = None,
    *,
    arguments: Sequence[str] = (),
    runs: int = 3,
    loops: bool = True,
    fake: bool = False,
    replace: bool = False,
) -> Path:
    """Run a script and write its numpy and PyTorch calls as a workload, one statement per call.

    The time of each call is written to a second file next to the workload, for `hwsim.compare`.

    Args:
        script: path of the Python script.
        output: path of the workload; default: the script's name with .yaml, in the working directory.
        arguments: arguments of the script.
        runs: number of runs: the first run records the calls, later runs time them.
        loops: whether repeated calls are written as `repeat`.
        fake: PyTorch only: use tensors without memory, and compute or time nothing.
        replace: whether existing files are overwritten.

    Returns:
        The path of the workload.

    Raises:
        ScriptFailed: The script ended with an error. No file is written.
        NothingRecorded: The script made no numpy or PyTorch calls. No file is written.
        FileExistsError: One of the two files exists and `replace` is false.
    """
    from hwsim.views.kit.file_output import write
    from hwsim_calibrate.recording import output as recording_output
    from hwsim_calibrate.recording.script import record_script

    output = Path(f"{Path(script).stem}.yaml") if output is None else Path(output)
    times = recording_output.measured_path(output)
    _refuse_replacing((output, times), replace=replace)
    recording = record_script(script, arguments, runs=runs, fake=fake)
    text, measured = recording_output.document(recording, loops=loops)
    write(times, [recording_output.packed(measured)])
    return write(output, [text.encode()])


def calibrate(
    output: str | Path,
    *,
    budget: float | None = None,
    suites: Sequence[str] = (),
    workload: str | None = None,
    gpu: int = 0,
    seed: int = 0,
    fresh: bool = False,
    replace: bool = False,
) -> Path:
    """Measure this computer and fit a machine file to the measurements.

    This takes minutes, and other running programs reduce the accuracy. The measurements are saved next to the machine file: for
    here.yaml, in here.measurements.json.gz. An interrupted run resumes from that file. `hwsim calibrate validate` reports the
    prediction errors.

    Args:
        output: path of the machine file, such as here.yaml.
        budget: time limit for measuring (s); default: 80 s.
        suites: names of the suites to measure; default: all.
        workload: measure the ops of this workload and the cases that every machine file requires, in addition to `suites`.
        gpu: index of the GPU to measure.
        seed: seed of the random order of the cases.
        fresh: whether the measurements of an earlier run are discarded.
        replace: whether an existing machine file is overwritten.

    Returns:
        The path of the machine file.

    Raises:
        SpecError: The suite or workload does not exist, or the existing measurements are from another machine.
        FileExistsError: The machine file exists and `replace` is false.
    """
    from hwsim.views.kit.file_output import write
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.session import RUN_BUDGET, Plan, measure
    from hwsim_calibrate.workload_cases import cases_for

    output = Path(output)
    _refuse_replacing((output,), replace=replace)
    more = cases_for(workload)[0] if workload else ()
    plan = Plan(suites, more, needed=bool(workload), budget=RUN_BUDGET if budget is None else budget, seed=seed, gpu=gpu)
    store = output.with_name(output.name.removesuffix(".yaml") + ".measurements.json.gz")
    if fresh:
        store.unlink(missing_ok=True)
    measurements = measure(plan, store)
    return write(output, [fit(measurements, name=output.stem, seed=seed).yaml().encode()])


def _refuse_replacing(paths: Sequence[Path], *, replace: bool) -> None:
    for path in paths:
        if path.exists() and not replace:
            raise FileExistsError(f"{path} exists; use replace=True to overwrite it")
