"""Keys of collectives, of their algorithms and of the libraries that do them."""

from __future__ import annotations

from typing import Any, Final

from tests.keys.examples.writing import CPU, PLAIN_GPU, between, in_turn, machine, program
from tests.keys.feeling import Example

SPEEDS: Final = {"step": "2 us", "hop": "5 us", "rate": "50 %"}
NCCL: Final[dict[str, Any]] = {
    "kind": "nccl", "name": "measured", "notes": "none", "start": "10 us", "ll": {"step": "1 us", "hop": "3 us",
        "rate": "25 %"},
    "ll128": SPEEDS, "simple": {"step": "6 us", "hop": "14 us", "rate": "100 %"}, "send": "8 us", "nvlink": "80 %",
        "pcie": "70 %",
    "network": "85 %", "tree": "90 %", "nvls": 1.4, "nvls_start": "5 us", "nvls_knee": "1 MB", "nvls_ranks": 4,
        "issue": "12 us",
    "channels": 4, "nvls_channels": 3, "measured": {"all-reduce": [4, 8]},
}  # fmt: skip
SENDS: Final = {"start": "1 us", "ll": "5 GB/s", "step": "6 us", "peer": "1 us", "rate": "70 %", "kept": "50 %"}
BY_TABLES: Final[dict[str, Any]] = {
    "kind": "nccl", "choice": "tables", "start": "5 us", "pcie": "80 %", "host": "40 %", "sockets": "20 %", "sends": SENDS,
    **{
        name: {"step": step, "start": "3 us", "wide": "1 us", "kept": "50 %", "rate": rate}
        for name, step, rate in (("ll", "1 us", "50 %"), ("ll128", "2 us", "90 %"), ("simple", "6 us", "100 %"))
    },
}  # fmt: skip
OWN: Final = {
    "kind": "own", "name": "own", "notes": "none",
    "links": {
        "nvlink3": {
            "start": "4 us", "one": "60 %", "peer": "1 us", "sync": "3 us", "two": "80 %", "reads": "20 MB", "largest": "40 MB",
            "ranks": 4, "two_from": 3,
        },
    },
}  # fmt: skip
CURVES: Final = {
    name: {
        "start": "4 us",
        "bandwidth": "2 GB/s",
        "ranks": ranks,
        "root": "1 ns",
        "knee": "10 kB",
        "eager": "16 kB",
        "rendezvous": "3 us",
    }
    for name, ranks in (("all-reduce", 8), ("all-gather", 4), ("send", 2))
}
HOT: Final = [[1.0, 1.0, 1.0, 4.0]] * 4
SIZES: Final = ("8 B", "30 kB", "1 MB", "300 MB")


def _node(**more: Any) -> dict[str, Any]:
    return {
        "kind": "machine",
        "count": 2,
        "parts": {
            "cpu": CPU,
            "gpu": {**PLAIN_GPU, "count": 4},
            "nic": {"kind": "nic", "bandwidth": "100 Gb/s"},
            "nvs": {"kind": "switch", "reduces": True},
        },
        "links": [
            between("cpu", "gpu*", "pcie", gen=3, lanes=16),
            between("gpu*", "nvs", "nvlink", gen=3, links=4),
            between("cpu", "nic", "pcie", gen=3, lanes=16),
        ],
        **more,
    }


def _cluster(library: dict[str, Any] | None = None) -> dict[str, Any]:
    wire = {"kind": "ethernet", "between": ["node*.nic", "leaf"], "rate": "100 Gb/s"}
    return machine(wire, node=_node(), leaf={"kind": "switch"}, more={"collectives": library} if library else {})


def _every(among: str) -> list[dict[str, Any]]:
    return [{"allreduce": {"among": among, "bytes": size}} for size in SIZES]


def _four(library: dict[str, Any] | None = None) -> dict[str, Any]:
    return machine(
        between("cpu", "gpu*", "pcie", gen=3, lanes=16),
        between("gpu0", "gpu*", "nvlink", gen=2),
        between("cpu", "other", "pcie", gen=1, lanes=1),
        cpu=CPU,
        other=PLAIN_GPU,
        gpu={**PLAIN_GPU, "count": 4},
        more={"collectives": library} if library else {},
    )


def _by(algorithm: dict[str, Any], op: str = "allreduce", **more: Any) -> Example:
    keys = {"among": "gpu*", "bytes": "10 MB", "algorithm": algorithm, **more}
    return Example(
        f"algorithm {algorithm['kind']}",
        _four(),
        program({op: keys}),
        tried={
            "algorithm parameter-server.at": (["other"],),
            "algorithm parameter-server.on": ("workers",),
            "algorithm ring.orders": ([[0, 2, 1, 3], [0, 1, 3, 2]],),
            "algorithm ring.widths": ([3.0, 1.0],),
        },
    )


WRITTEN: Final = {
    "kind": "written",
    "operation": "all-reduce",
    "ranks": 2,
    "chunks": 2,
    "steps": [[{"from": 0, "to": 1, "chunk": 0, "count": 2, "reduce": True}], [{"from": 1, "to": 0, "chunk": 0, "count": 2}]],
}
FABRIC: Final = {
    "kind": "fabric", "name": "network", "notes": "none", "ll": "9 us", "ll128": "11 us", "simple": "30 us", "network": "80 %",
    "tree": "90 %",
}  # fmt: skip
ONE_NODE: Final = {key: value for key, value in NCCL.items() if key not in ("network", "tree", "ll", "ll128", "simple")} | {
    "ll": {"step": "1 us", "rate": "25 %"}, "ll128": {"step": "2 us", "rate": "50 %"}, "simple": {"step": "6 us"},
}  # fmt: skip
EXAMPLES: Final = (
    Example("library fabric", _cluster({"nccl": ONE_NODE, "fabric": FABRIC}), in_turn(*_every("node*.gpu*"))),
    Example(
        "network of a card",
        machine(
            {"kind": "ethernet", "between": ["node*.nic", "leaf"], "rate": "100 Gb/s"},
            node=_node(parts=_node()["parts"] | {"nic": {"kind": "nic", "bandwidth": "100 Gb/s", "fabric": "efa"}}),
            leaf={"kind": "switch"},
            more={"collectives": ONE_NODE},
        ),
        in_turn(*_every("node*.gpu*")),
        tried={"nic.fabric": ("tcpxo",)},
    ),
    Example(
        "library nccl",
        _cluster(NCCL),
        in_turn(
            *_every("node0.gpu*"),
            *_every("node*.gpu*"),
            {"collective": {"operation": "send", "among": ["node0.gpu0", "node0.gpu1"], "bytes": "1 MB"}},
            {"compute": {"device": "node0.gpu0", "flop": "100 GFLOP"}},
        ),
    ),
    Example(
        "library nccl over pcie",
        machine(
            between("cpu", "gpu*", "pcie", gen=3, lanes=16), cpu=CPU, gpu={**PLAIN_GPU, "count": 2}, more={"collectives": NCCL}
        ),
        in_turn(*_every("gpu*")),
    ),
    Example(
        "kernels beside a collective",
        machine(
            between("gpu*", "nvs", "nvlink", gen=3, links=4),
            nvs={"kind": "switch"},
            gpu={**PLAIN_GPU, "sms": 80, "count": 4},
            more={"collectives": NCCL},
        ),
        program({"allreduce": {"among": "gpu*", "bytes": "1 GB"}}, {"compute": {"device": "gpu0", "flop": "1 TFLOP"}}),
    ),
    Example(
        "library nccl by its tables",
        machine(
            {"kind": "upi", "between": ["cpu0", "cpu1"], "rate": "10.4 GT/s", "links": 2},
            {"kind": "pcie", "between": ["cpu*", "gpu*"], "per": 2, "gen": 3, "lanes": 16},
            cpu={**CPU, "count": 2},
            gpu={**PLAIN_GPU, "count": 4},
            more={"collectives": BY_TABLES},
        ),
        in_turn(
            *_every("gpu*"),
            *({"allreduce": {"among": ["gpu0", "gpu1"], "bytes": size}} for size in SIZES),
            *({"alltoall": {"among": "gpu*", "bytes": size}} for size in SIZES),
        ),
    ),
    Example(
        "library own",
        _cluster(OWN),
        in_turn(*({"allreduce": {"among": "node0.gpu*", "bytes": size}} for size in ("8 B", "1 MB", "10 MB", "30 MB", "300 MB"))),
        tried={"library own.links.*.reads": ("10 B",), "library own.links.*.two_from": (8,)},
    ),
    Example(
        "an all-reduce of its own",
        _cluster(),
        program({"allreduce": {"among": "node0.gpu*", "bytes": "100 kB", "algorithm": {"kind": "own", "of": "vllm"}}}),
        tried={"algorithm own.of": ("trtllm",)},
    ),
    Example(
        "library mpi",
        _cluster({"kind": "mpi", "curves": CURVES, "wire": "5 GB/s", "hop": "2 us"}),
        in_turn(
            *({"allreduce": {"among": "node*.cpu", "bytes": size}} for size in SIZES),
            *({"allgather": {"among": "node*.cpu", "bytes": size}} for size in SIZES),
            {"send": {"from": "node0.cpu", "to": "node1.cpu", "bytes": "1 MB"}},
        ),
    ),
    Example(
        "library overheads",
        _cluster(
            {
                "kind": "overheads",
                "start": "10 us",
                "step": "2 us",
                "hop": "5 us",
                "efficiency": "80 %",
                "knee": "100 kB",
                "compute": "20 %",
            }
        ),
        program(*_every("node*.gpu*"), {"compute": {"device": "node0.gpu0", "flop": "100 GFLOP"}}),
    ),
    Example(
        "library of parts",
        _four({"use": "h200", "kind": "nccl"}),
        program(*_every("gpu*")),
        tried={"library.use": ("dgx1-v100",)},
    ),
    _by({"kind": "ring", "both": True, "orders": [[0, 1, 2, 3], [0, 2, 1, 3]], "widths": [2.0, 1.0], "channels": 2}),
    Example(
        "rings of nvlinks",
        machine(
            {"kind": "nvlink", "gen": 2, "topology": "fully-connected", "of": ["gpu*"]},
            between("cpu", "gpu*", "pcie", gen=3, lanes=16),
            cpu=CPU,
            gpu={**PLAIN_GPU, "count": 5},
        ),
        program({"allreduce": {"among": "gpu*", "bytes": "10 MB", "algorithm": {"kind": "ring", "found": True}}}),
    ),
    _by({"kind": "parameter-server", "servers": 1, "on": "beside", "at": ["cpu"]}),
    _by({"kind": "parameter-server", "servers": 2, "on": "workers"}),
    _by({"kind": "torus", "rows": 2, "both": True}),
    Example(
        "torus of rows",
        _cluster(),
        program({"allreduce": {"among": "node*.gpu*", "bytes": "10 MB", "algorithm": {"kind": "torus", "rows": 2}}}),
        tried={"algorithm torus.rows": (4,)},
    ),
    _by({"kind": "double-tree", "pieces": 8}, steps="explicit"),
    _by({"kind": "hierarchical", "pieces": 8}, among="gpu*"),
    Example(
        "hierarchical",
        _cluster(),
        program({"allreduce": {"among": "node*.gpu*", "bytes": "10 MB", "algorithm": {"kind": "hierarchical", "pieces": 8}}}),
    ),
    Example(
        "in the network",
        _cluster(),
        program({"allreduce": {"among": "node0.gpu*", "bytes": "10 MB", "algorithm": {"kind": "in-network", "by": "nvls"}}}),
    ),
    Example(
        "a switch that adds",
        machine(
            between("gpu*", "nvs", "nvlink", gen=4, links=18),
            nvs={"kind": "switch", "reduces": True},
            gpu={**PLAIN_GPU, "count": 8},
        ),
        program({"allreduce": {"among": "gpu*", "bytes": "1 GB", "algorithm": "auto"}}),
    ),
    Example("written", _four(), program({"allreduce": {"among": ["gpu0", "gpu1"], "bytes": "10 MB", "algorithm": WRITTEN}})),
    Example(
        "step by step",
        _four(),
        program({"allreduce": {"among": "gpu*", "bytes": "10 MB", "steps": "explicit", "chunks": 4, "algorithm": "ring"}}),
        tried={"op of several.algorithm": ("direct",)},
    ),
    Example("unequal", _four(), program({"alltoall": {"among": "gpu*", "bytes": "10 MB", "skew": [4.0, 1.0, 1.0, 1.0]}})),
    Example(
        "a hot expert",
        _four(),
        program({"alltoall": {"among": "gpu*", "bytes": "10 MB", "matrix": HOT}}),
        tried={"op alltoall.matrix": ([[1.0] * 4] * 4,)},
    ),
    Example(
        "in pieces",
        _four(),
        program(
            {"compute": {"name": "backward", "device": "gpu0", "flop": "1 TFLOP", "pieces": 4}},
            {"allreduce": {"among": "gpu*", "bytes": "100 MB", "overlaps": "backward"}},
        ),
    ),
    *(
        Example(
            f"{op} from a root",
            machine(
                between("cpu", "psw", "pcie", gen=3, lanes=4),
                between("psw", "gpu*", "pcie", gen=3, lanes=16),
                between("cpu", "far", "pcie", gen=1, lanes=1),
                cpu=CPU,
                psw={"kind": "switch"},
                gpu={**PLAIN_GPU, "count": 3},
                far=PLAIN_GPU,
            ),
            program({op: {"among": ["gpu*", "far"], "bytes": "10 MB", "root": "far"}}),
            tried={f"op {op}.root": ("gpu2",)},
        )
        for op in ("broadcast", "gather", "scatter")
    ),
    Example(
        "any collective",
        _four(),
        program({"collective": {"operation": "all-gather", "among": "gpu*", "bytes": "10 MB", "root": "gpu1"}}),
        tried={"op collective.operation": ("all-reduce",)},
    ),
    Example(
        "a collective of a root",
        machine(
            between("cpu", "gpu*", "pcie", gen=3, lanes=16),
            between("cpu", "far", "pcie", gen=1, lanes=1),
            cpu=CPU,
            gpu={**PLAIN_GPU, "count": 3},
            far=PLAIN_GPU,
        ),
        program({"collective": {"operation": "broadcast", "among": ["gpu*", "far"], "bytes": "10 MB", "root": "far"}}),
        tried={"op collective.root": ("gpu1",)},
    ),
)
