"""hwsim: how long will this workload take on that machine, what holds it back, and what would help?

    import hwsim

    result = hwsim.simulate("machine.yaml", "workload.yaml", set={"batch": 128})

A path or the name of a machine or workload of the library; every mistake in the files comes as one
`SpecError` with file, line and column. Names are imported on first use, so that `import hwsim`
costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from hwsim.version import __version__

__all__ = [
    "Deadlock",
    "ExpectationFailed",
    "GraphBuilder",
    "OpGraph",
    "OutOfMemory",
    "Result",
    "Run",
    "SpecError",
    "__version__",
    "find",
    "load_graph",
    "loads",
    "save_graph",
    "simulate",
    "sweep",
]

_HOMES: Final = {
    "Deadlock": "hwsim.engine",
    "ExpectationFailed": "hwsim.api",
    "GraphBuilder": "hwsim.graph.builder",
    "OpGraph": "hwsim.graph.opgraph",
    "OutOfMemory": "hwsim.api",
    "Result": "hwsim.results.result",
    "Run": "hwsim.api",
    "SpecError": "hwsim.spec",
    "find": "hwsim.studies",
    "load_graph": "hwsim.graph.files",
    "loads": "hwsim.api",
    "save_graph": "hwsim.graph.files",
    "simulate": "hwsim.api",
    "sweep": "hwsim.studies",
}

if TYPE_CHECKING:
    from hwsim.api import ExpectationFailed, OutOfMemory, Run, loads, simulate
    from hwsim.engine import Deadlock
    from hwsim.graph.builder import GraphBuilder
    from hwsim.graph.files import load_graph, save_graph
    from hwsim.graph.opgraph import OpGraph
    from hwsim.results.result import Result
    from hwsim.spec import SpecError
    from hwsim.studies import find, sweep
else:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'hwsim' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
