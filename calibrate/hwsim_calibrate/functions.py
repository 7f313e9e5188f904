"""The commands `hwsim record` and `hwsim calibrate run` as functions: `hwsim.record`, `hwsim.calibrate`."""

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
    """Run a script of numpy or PyTorch, and write its calls as a workload: a statement for each call.

    The time of each call goes into a file next to it, for `hwsim.compare`.

    Args:
        script: the Python file.
        output: the workload to write (default: the script's name with .yaml, in the working directory).
        arguments: the script's own arguments.
        runs: the first records the calls, the others time them.
        loops: write calls that repeat as `repeat`.
        fake: with PyTorch, arrays have shapes and no memory, nothing is computed or timed.
        replace: files that are there are written over.

    Returns:
        The workload's file.

    Raises:
        ScriptFailed, NothingRecorded: it ended in an error, or called nothing of these libraries; nothing is written.
        FileExistsError: one of the two files is there already.
    """
    from hwsim.views.kit.file_output import write
    from hwsim_calibrate.recording import writing
    from hwsim_calibrate.recording.script import record_script

    output = Path(f"{Path(script).stem}.yaml") if output is None else Path(output)
    times = writing.measured_path(output)
    _refuse_replacing((output, times), replace=replace)
    text, measured = writing.document(record_script(script, arguments, runs=runs, fake=fake), loops=loops)
    write(times, [writing.packed(measured)])
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
    """Measure this computer and fit a machine file to it. Minutes; other programs that run meanwhile make it worse.

    The measurements go next to it, into OUTPUT.measurements.json.gz without its .yaml; what was interrupted goes on from there.
    `hwsim calibrate validate` says how far off its predictions are.

    Args:
        output: the machine file to write, such as here.yaml.
        budget: seconds to measure (default: as the command takes).
        suites: what is measured (default: all).
        workload: measure the ops of this one, and what a machine file needs, in addition to `suites`: the option `--for`.
        gpu: number of the GPU that is measured.
        seed: start of the random order in which cases are measured.
        fresh: measure anew instead of going on from an earlier run.
        replace: a machine file that is there is written over.

    Returns:
        The machine's file.

    Raises:
        SpecError: there is no suite or workload of that name, or measurements that are there are of another machine.
        FileExistsError: the machine file is there already.
    """
    from hwsim.views.kit.file_output import write
    from hwsim_calibrate.demanded import cases_for
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.session import RUN_BUDGET, Plan, measure

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
    """Raise FileExistsError for what is there, unless it may be written over."""
    for path in paths:
        if path.exists() and not replace:
            raise FileExistsError(f"{path} is there already; replace=True writes over it")
