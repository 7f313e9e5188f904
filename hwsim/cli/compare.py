"""`hwsim compare`: compare two machines, workloads or runs, or a run with measurements."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import click

from hwsim.cli.arguments import FILE, LibraryName, answered, as_settings, printed, refuse_unwritable, settings_option, write_files
from hwsim.cli.cost_options import paying_options
from hwsim.results.invariants import document

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying

ANY: Final = LibraryName("machine")
TABLES: Final = (".csv", ".json", ".json.gz", ".gz")
FORMS: Final = (
    "MACHINE MACHINE WORKLOAD", "MACHINE WORKLOAD WORKLOAD", "MACHINE MACHINE WORKLOAD WORKLOAD", "RUN.json RUN.json",
    "RUN.json TABLE", "MACHINE WORKLOAD TABLE", "MACHINE WORKLOAD with --set-a or --set-b",
    "MACHINE WORKLOAD [MEASURED], a workload of `hwsim record`", "MACHINE WORKLOAD TRACE", "TRACE TRACE",
    "STEP.npz TRACE, with a step that `hwsim import` wrote",
)  # fmt: skip
Kind = Literal["machine", "workload", "run", "table", "trace", "step"]


class ComparedInput(NamedTuple):
    """An argument with its kind and content."""

    kind: Kind
    name: str
    content: Any


@click.command("compare", short_help="Explain the difference between two machines, workloads or runs.")
@click.argument("files", type=ANY, nargs=-1, required=True)
@settings_option
@click.option("--set-a", "set_a", multiple=True, metavar="PATH=VALUE", callback=as_settings, help="Change one value of A only.")
@click.option("--set-b", "set_b", multiple=True, metavar="PATH=VALUE", callback=as_settings, help="Change one value of B only.")
@click.option(
    "--by", default="", metavar="MEASURE", help="Quantity to compare: time (default), step, tokens/s, ttft_p95, ... as in sweep."
)
@click.option("--waterfall/--no-waterfall", "attribute", default=True,
              help="Attribute the difference to the single changes of the files by more runs (default: yes).")  # fmt: skip
@click.option("--orders", type=click.IntRange(min=2), metavar="N",
              help="Number of orders to sample for more than eight changes (default: 64); fewer are less exact.")  # fmt: skip
@click.option("--interval", is_flag=True, help="Simulate both ends of the 90 % intervals, with queueing.")
@click.option("-v", "--verbose", is_flag=True, help="Add causes and ops; for measurements and traces, print every row.")
@paying_options
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: compare/2, comparison/2).")
@click.option("--report", type=FILE, metavar="FILE", help="Write an HTML page.")
@click.option("--plot", type=FILE, metavar="FILE", help="Write a figure (.png, .svg or .pdf).")
def command(
    files: tuple[str, ...],
    settings: dict[str, str],
    set_a: dict[str, str],
    set_b: dict[str, str],
    by: str,
    paying: Paying | None,
    attribute: bool,
    orders: int | None,
    interval: bool,
    verbose: bool,
    as_json: bool,
    report: Path | None,
    plot: Path | None,
) -> None:
    """Compare two machines with a workload, two workloads on a machine, or two runs written by `hwsim simulate --json --ops`:
    the speedup, by bound and by op, and the contribution of each change of the files.

    Also compares a run with a table of measurements (op, time), and a recorded workload with its recorded times. A TRACE is a
    profile of the real run: Kineto, Nsight Systems or Chakra files, one per rank, or their folder.
    """
    refuse_unwritable(plot)
    refuse_unwritable(report, "--report", "page", (".html",))
    from hwsim.cli.errors import print_errors

    with print_errors():
        given = [given_by(name) for name in files]
    kinds = [file.kind for file in given]
    if {"trace", "step"} & set(kinds):
        from hwsim.cli.traces import compare_traces

        for option, is_given in (("--set-a, --set-b", set_a or set_b), ("--by", by), ("--orders", orders),
                                 ("--interval", interval), ("--report", report)):  # fmt: skip
            if is_given:
                raise click.UsageError(f"{option} cannot be combined with a trace")
        with print_errors():
            with_trace = compare_traces(given, settings, _no_form)
        with answered(
            lambda: click.echo(document(with_trace.to_json()) if as_json else printed(with_trace.text(every=verbose)), nl=False)
        ):
            write_files([(plot, with_trace.plot)])
        return
    is_changed = bool(set_a or set_b)
    if kinds == ["machine", "workload"] and not is_changed:
        with print_errors():
            given.append(_recorded(given))
        kinds.append("table")
    if "table" in kinds:
        for option, is_given in (("--by", by), ("--orders", orders), ("--interval", interval), ("--report", report)):
            if is_given:
                raise click.UsageError(f"{option} cannot be combined with measurements")
        _of_table(given, settings, every=verbose, as_json=as_json, plot=plot)
        return
    from hwsim import comparing
    from hwsim.cli.progress import progress
    from hwsim.comparing.shapley import ORDERS
    from hwsim.functions.compare import is_pair

    with print_errors(), progress(shown=sys.stderr.isatty(), unit="runs") as shown:
        if kinds == ["run", "run"]:
            _refuse_settings(settings, set_a, set_b)
            sides = [comparing.of_document(file.content, file.name) for file in given]
            both = comparing.of_sides(sides[0], sides[1], by)
        else:
            machines, workloads = ([file.content for file in given if file.kind == kind] for kind in ("machine", "workload"))
            if len(machines) + len(workloads) != len(given) or not is_pair(machines, workloads, own=is_changed):
                raise click.UsageError(_no_form(given))
            both = comparing.compare(
                (machines[0], machines[-1]), (workloads[0], workloads[-1]), set=settings, set_a=set_a, set_b=set_b, by=by,
                attribute=attribute, paying=paying, progress=shown, interval="runs" if interval else True,
                orders=orders or ORDERS,
            )  # fmt: skip
    with answered(
        lambda: click.echo(document(both.to_json()) if as_json else printed(both.text(verbose=verbose), both.given), nl=False)
    ):
        write_files([(plot, both.plot), (report, both.report)])


def _no_form(given: Sequence[ComparedInput]) -> str:
    said = ", ".join(f"'{file.name}' is a {file.kind}" for file in given)
    return f"nothing to compare: {said}. Accepted:\n  " + "\n  ".join(FORMS)


def _refuse_settings(*settings: Mapping[str, str]) -> None:
    if any(settings):
        raise click.UsageError("--set cannot change a saved run")


def given_by(name: str) -> ComparedInput:
    """Return the file that an argument names, with its kind.

    Raises:
        SpecError: the file does not exist, or cannot be compared.
    """
    from hwsim.comparing.measured import read_table
    from hwsim.functions.compare import kind_of
    from hwsim.spec import SpecError, read
    from hwsim.spec.packed import read_json

    trace = _trace(Path(name))
    if trace is not None:
        return trace
    if name.endswith(TABLES):
        path = Path(name)
        if not path.is_file():
            raise SpecError.of(None, f"there is no file '{name}'")
        if name.endswith(".csv"):
            return ComparedInput("table", name, read_table(path))
        content = read_json(path)
        form = content.get("hwsim") if isinstance(content, Mapping) else None
        if form is None or str(form).startswith("recording/"):
            return ComparedInput("table", name, read_table(path))
        return ComparedInput("run", name, content)
    source = read(name) if name == "-" else Path(name) if "." not in name and Path(name).is_file() else name
    return ComparedInput(kind_of(source), name, source)


def _trace(path: Path) -> ComparedInput | None:
    """Return a profile of another tool or a step of `hwsim import`; None for other files."""
    if path.is_dir():
        return ComparedInput("trace", str(path), path)
    if not path.is_file():
        return None
    if path.suffix == ".npz":
        return ComparedInput("step", str(path), path)
    if not path.name.endswith((".json", ".gz", ".et", ".sqlite")):
        return None
    from hwsim.importers.formats import format_of

    return ComparedInput("trace", str(path), path) if format_of(path) else None


def _recorded(given: Sequence[ComparedInput]) -> ComparedInput:
    """Return the times recorded with a workload, from the file next to it."""
    from importlib import import_module

    workload = given[1].name
    path: Path = import_module("hwsim_calibrate.recording.output").measured_path(workload)
    if not path.is_file():
        raise click.UsageError(f"{_no_form(given)}\n'{workload}' has no recorded times: {path} does not exist")
    return given_by(str(path))


def _of_table(
    given: Sequence[ComparedInput], settings: Mapping[str, str], *, every: bool, as_json: bool, plot: Path | None
) -> None:
    from hwsim.cli.errors import print_errors
    from hwsim.comparing.measured import against

    runs = [file for file in given if file.kind != "table"]
    tables = [file for file in given if file.kind == "table"]
    if len(tables) != 1 or [run.kind for run in runs] not in (["run"], ["machine", "workload"], ["workload", "machine"]):
        raise click.UsageError(_no_form(given))
    if runs[0].kind == "run":
        _refuse_settings(settings)
    with print_errors():
        compared = against({file.kind: file.content for file in runs}, runs[0].name, tables[0].content, settings)
    with answered(lambda: click.echo(document(compared.to_json()) if as_json else printed(compared.text(every=every)), nl=False)):
        write_files([(plot, compared.plot)])
