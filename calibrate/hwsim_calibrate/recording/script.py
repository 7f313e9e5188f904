"""One or several runs of a script that is recorded."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim_calibrate import blas
from hwsim_calibrate.recording.numpy_patches import recording
from hwsim_calibrate.recording.tape import Step, Tape

_COARSE: Final = 1e-5  # seconds: CPU clocks with longer steps cannot time calls


class ScriptFailed(Exception):
    """The script ended with an error; the text is its traceback."""


class NothingRecorded(Exception):
    """The script made no numpy or PyTorch calls."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded calls of a script, with median times over the runs.

    Args:
        name: name of the script.
        steps: the calls.
        wall: wall time of the script (s).
        cpu: CPU time of the script (s).
        runs: number of runs.
        threads: threads of matmuls.
        clock: the clock that counts for calls, `wall` or `cpu`.
        notes: remarks for the user.
        dispatch: host time between two PyTorch calls (s); 0 for numpy, whose call times include it.
        libraries: names of the recorded libraries.
        fake: whether tensors had no memory and nothing was computed or timed.
    """

    name: str
    steps: tuple[Step, ...]
    wall: float
    cpu: float
    runs: int
    threads: int
    clock: str
    notes: tuple[str, ...] = ()
    dispatch: float = 0.0
    libraries: tuple[str, ...] = ("numpy",)
    fake: bool = False

    def seconds(self, step: Step) -> float:
        """Return the time of a call (s) on the clock that counts."""
        return 0.0 if self.fake else step.cpu if self.clock == "cpu" else step.wall

    @property
    def inside(self) -> float:
        """Time of all recorded calls (s)."""
        return sum(self.seconds(step) for step in self.steps)

    @property
    def unknown(self) -> float:
        """Time of all calls without a corresponding op (s)."""
        return sum(self.seconds(step) for step in self.steps if step.op.reason)


def record_script(path: str | Path, arguments: Sequence[str] = (), *, runs: int = 1, fake: bool = False) -> Recording:
    """Run a script several times like `python path arguments`, each in its own namespace; only the first run prints.

    The first run records the calls, later runs time them with warm caches. PyTorch scripts run once more without recording, to
    determine the host time outside the calls.

    Args:
        path: path of the script.
        arguments: arguments of the script.
        runs: number of runs.
        fake: whether PyTorch uses tensors without memory, and nothing is computed or timed.

    Raises:
        ScriptFailed: The script ended with an error.
        NothingRecorded: The script made no numpy or PyTorch calls.
    """
    path = Path(path)
    tapes: list[Tape] = []
    spent: list[tuple[float, float]] = []
    of_torch = _names(path, b"torch") and find_spec("torch") is not None
    for index in range(1 if fake else runs):
        tape = Tape(str(path), only_times=index > 0)
        wall, cpu = time.perf_counter(), time.process_time()
        with _silent(index > 0), recording(tape), _of_torch(tape, fake=fake, used=of_torch):
            _run(path, arguments)
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))
        tapes.append(tape)
    if not tapes[0].steps:
        raise NothingRecorded(f"{path.name} makes no numpy or PyTorch calls that can be recorded")
    steps, deviating = _merge_runs(tapes)
    notes = [f"{deviating} of {runs} runs made different calls than the first run and were ignored"] if deviating else []
    if "cupy" in sys.modules:
        notes.append("the script uses cupy, whose calls are not recorded")
    if tapes[0].elsewhere:
        notes.append(f"{tapes[0].elsewhere} calls of other threads were not recorded")
    threads = _threads(of_torch)
    clock = "cpu" if threads == 1 and time.get_clock_info("thread_time").resolution < _COARSE else "wall"
    wall, cpu = (float(np.median(times)) for times in zip(*(spent[1:] or spent), strict=True))
    dispatch = 0.0
    if of_torch and len(tapes) > 1:
        dispatch = _between(path, arguments, sum(step.cpu if clock == "cpu" else step.wall for step in steps), clock) / len(steps)
    libraries = ("numpy", *(("PyTorch",) if of_torch else ()))
    return Recording(path.stem, steps, wall, cpu, len(tapes), threads, clock, tuple(notes), dispatch, libraries, fake)


def _between(path: Path, arguments: Sequence[str], inside: float, clock: str) -> float:
    """Return the time (s) of a run without recording that is not spent in its calls."""
    from hwsim_calibrate.recording.torch import one_thread

    read = time.process_time if clock == "cpu" else time.perf_counter
    with _silent(True), one_thread():
        began = read()
        _run(path, arguments)
        return max(read() - began - inside, 0.0)


def _threads(of_torch: bool) -> int:
    """Return the number of threads of matmuls."""
    if of_torch:
        from hwsim_calibrate.recording.torch import threads

        return threads()
    library = blas.loaded()
    return library.threads() if library else int(os.environ.get("OMP_NUM_THREADS", "1"))


def _silent(silent: bool) -> contextlib.AbstractContextManager[Any]:
    return contextlib.redirect_stdout(io.StringIO()) if silent else contextlib.nullcontext()


def _names(path: Path, library: bytes) -> bool:
    """Return whether a script names a library, because importing PyTorch takes long."""
    return library in path.read_bytes()


def _of_torch(tape: Tape, *, fake: bool, used: bool) -> contextlib.AbstractContextManager[Any]:
    if not used:
        return contextlib.nullcontext()
    from hwsim_calibrate.recording.torch import recording_torch

    return recording_torch(tape, fake=fake)


def _merge_runs(tapes: Sequence[Tape]) -> tuple[tuple[Step, ...], int]:
    """Return the calls of the first run with their median times over later runs, and the number of runs with other calls."""
    first, later = tapes[0], tapes[1:]
    same = [tape.times for tape in later if [time[:2] for time in tape.times] == [time[:2] for time in first.times]]
    if not same:
        return tuple(first.steps), len(later)
    medians = np.median([[time[2:] for time in times] for times in same], axis=0).tolist()  # wall, cpu, faults
    steps = [
        replace(step, wall=wall, cpu=cpu, faults=faults) for step, (wall, cpu, faults) in zip(first.steps, medians, strict=True)
    ]
    return tuple(steps), len(later) - len(same)


def _run(path: Path, arguments: Sequence[str]) -> None:
    with _as_main(path, arguments):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise ScriptFailed(f"{path.name} ended with exit code {end.code}") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (scripts may raise anything)
            raise ScriptFailed(_traceback(error, path)) from None


@contextlib.contextmanager
def _as_main(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """Set sys.argv and sys.path as Python does for a script, and let os._exit end only the script."""
    argv, folders, at_once, process = sys.argv, list(sys.path), os._exit, os.getpid()
    os._exit = lambda status: sys.exit(status) if os.getpid() == process else at_once(status)  # child processes really exit
    sys.argv, sys.path[:0] = [str(path), *arguments], [str(path.absolute().parent)]
    try:
        yield
    finally:
        sys.argv, sys.path[:], os._exit = argv, folders, at_once


def _traceback(error: BaseException, path: Path) -> str:
    """Return the traceback like Python, starting at the script."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != str(path):
        frames = frames.tb_next
    ours = str(Path(__file__).parent)
    shown = traceback.TracebackException(type(error), error, frames)
    shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if not frame.filename.startswith(ours)])
    return "".join(shown.format()).rstrip()
