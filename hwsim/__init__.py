"""hwsim predicts how long a workload takes on a machine, what the bottleneck is, and what would make it faster::

    import hwsim

    result = hwsim.simulate("machine.yaml", "workload.yaml", set={"batch": 128})

Functions have the names of the commands: simulate, sweep, study, find, compare, sensitivity, explain, latency, roofline,
collectives, topology, plan, estimate, explore, check, show, new, schema, export, record, calibrate; import_run is `hwsim
import`. The argument for a file is its path, a name of the library, or its text. A single `SpecError` lists all mistakes in the
files with file, line and column. Results have text (`str`), numbers (`to_json()`, `to_pandas()`) and, if they include a figure,
`plot()`.
Names are imported on first use, so that `import hwsim` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from hwsim.version import __version__

__all__ = [
    "Deadlock", "ExpectationFailed", "GraphBuilder", "OpGraph", "OutOfMemory", "Paying", "Result", "Run", "Session",
    "SpecError", "__version__", "calibrate", "check", "collectives", "compare", "estimate", "explain", "explore", "export",
    "find", "import_run", "latency", "load_graph", "loads", "new", "plan", "record", "roofline", "save_graph", "schema",
    "score", "sensitivity", "show", "simulate", "study", "sweep", "topology",
]  # fmt: skip

_HOMES: Final = {
    "Deadlock": "hwsim.engine",
    "ExpectationFailed": "hwsim.api",
    "GraphBuilder": "hwsim.graph.builder",
    "OpGraph": "hwsim.graph.opgraph",
    "OutOfMemory": "hwsim.api",
    "Paying": "hwsim.costs.bill",
    "Result": "hwsim.results.result",
    "Run": "hwsim.api",
    "Session": "hwsim.studies.session",
    "SpecError": "hwsim.spec",
    "calibrate": "hwsim_calibrate.functions",
    "check": "hwsim.functions.files",
    "collectives": "hwsim.functions.views",
    "compare": "hwsim.functions.compare",
    "estimate": "hwsim.functions.estimate",
    "explain": "hwsim.functions.explain",
    "explore": "hwsim.explorer.launcher",
    "export": "hwsim.functions.export",
    "find": "hwsim.studies.bisection",
    "import_run": "hwsim.functions.imported",
    "latency": "hwsim.functions.views",
    "load_graph": "hwsim.graph.files",
    "loads": "hwsim.api",
    "new": "hwsim.functions.new",
    "plan": "hwsim.functions.plan",
    "record": "hwsim_calibrate.functions",
    "roofline": "hwsim.functions.views",
    "save_graph": "hwsim.graph.files",
    "schema": "hwsim.functions.files",
    "score": "hwsim.scoring.matching",
    "sensitivity": "hwsim.sensitivities.analysis",
    "show": "hwsim.functions.show",
    "simulate": "hwsim.api",
    "study": "hwsim.studies.sweeps",
    "sweep": "hwsim.studies.sweeps",
    "topology": "hwsim.functions.views",
}

if TYPE_CHECKING:
    from hwsim.api import ExpectationFailed, OutOfMemory, Run, loads, simulate
    from hwsim.costs.bill import Paying
    from hwsim.engine import Deadlock
    from hwsim.explorer.launcher import explore
    from hwsim.functions.compare import compare
    from hwsim.functions.estimate import estimate
    from hwsim.functions.explain import explain
    from hwsim.functions.export import export
    from hwsim.functions.files import check, schema
    from hwsim.functions.imported import import_run
    from hwsim.functions.new import new
    from hwsim.functions.plan import plan
    from hwsim.functions.show import show
    from hwsim.functions.views import collectives, latency, roofline, topology
    from hwsim.graph.builder import GraphBuilder
    from hwsim.graph.files import load_graph, save_graph
    from hwsim.graph.opgraph import OpGraph
    from hwsim.results.result import Result
    from hwsim.scoring.matching import score
    from hwsim.sensitivities.analysis import sensitivity
    from hwsim.spec import SpecError
    from hwsim.studies.bisection import find
    from hwsim.studies.session import Session
    from hwsim.studies.sweeps import study, sweep
    from hwsim_calibrate.functions import calibrate, record
else:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'hwsim' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
