"""Keys of network cards, switches, links and topologies."""

from __future__ import annotations

from typing import Any, Final

from hwsim import links
from tests.keys.examples.writing import CPU, PLAIN_GPU, between, in_turn, machine, program
from tests.keys.feeling import Example

BOTH_WAYS: Final = (
    {"copy": {"from": "a", "to": "b", "bytes": "100 kB"}},
    {"copy": {"from": "b", "to": "a", "bytes": "100 kB"}},
    {"wait": "all"},
    {"copy": {"from": "a", "to": "b", "bytes": "100 MB", "name": "long"}},
)
BOTH: Final = program(*BOTH_WAYS)
FULL: Final[dict[str, Any]] = {"latency": "1 us", "duplex": "full", "two_way": 1.5}


def _link(kind: str, number: int, keys: links.Keys) -> Example:
    shared = FULL if kind != "wifi" else {"latency": "1 us", "two_way": 2.0}
    return Example(
        f"link {kind} {number}".removesuffix(" 0"),
        machine(between("a", "b", kind, **shared, **keys), a=CPU, b=CPU),
        program(*BOTH_WAYS),
        tried={f"link {kind}.gen": (1,), "op copy.from": ("b",), "op copy.to": ("a",)},
    )


def _cluster(
    kind: str, topology: str, *statements: dict[str, Any], many: int = 8, more: dict[str, Any] | None = None, **keys: Any
) -> Example:
    node = {
        "kind": "machine",
        "count": many,
        "parts": {"cpu": CPU, "nic": {"kind": "nic", "bandwidth": "25 Gb/s"}},
        "links": [between("cpu", "nic", "pcie", gen=3, lanes=16)],
    }
    net = {"kind": kind, "name": "net", "topology": topology, "of": ["node*.nic"], "rate": "25 Gb/s", **keys}
    reach = [
        {"copy": {"from": f"node{a}.cpu", "to": f"node{b}.cpu", "bytes": "10 MB"}}
        for a, b in ((0, 1), (1, 2), (2, 5), (0, 7), (3, 7))
    ]
    return Example(
        f"topology {topology}",
        machine(net, node=node, **(more or {})),
        program(*(statements or reach)),
        tried={"link.of": (["node0..5.nic"],), "link.topology": ("ring",), "link.routing": ("ecmp",)},
    )


CARD: Final[dict[str, Any]] = {
    "kind": "nic", "bandwidth": "25 Gb/s", "latency": "1 us", "protocol": "tcp", "overhead": {"tcp": "5 us", "udp": "3 us",
        "rdma": "1 us"},
    "message_rate": "1e6 1/s", "power": "10 W", "lanes": 8, "ports": 1,
}  # fmt: skip
SWITCH: Final[dict[str, Any]] = {
    "kind": "switch", "latency": "300 ns", "bandwidth": "40 Gb/s", "forwarding": "store-and-forward", "packet": "1538 B",
        "power": "100 W",
    "ports": 4,
}  # fmt: skip
OF_A_SWITCH: Final[dict[str, Any]] = {
    "latency": "300 ns",
    "forwarding": "store-and-forward",
    "packet": "1538 B",
    "power": "100 W",
}
CARDS: Final = (
    between("a", "nic0", "pcie", gen=3, lanes=8), between("b", "nic1", "pcie", gen=3, lanes=8), between("c", "nic2", "pcie",
        gen=3, lanes=8),
    {"kind": "ethernet", "name": "cables", "notes": "none", "between": ["nic*", "leaf"], "rate": "25 Gb/s"},
)  # fmt: skip
MESSAGES: Final = (
    {"send": {"from": "a", "to": "b", "bytes": "1 kB", "messages": 1000}},
    {"send": {"from": "b", "to": "c", "bytes": "1 kB", "protocol": "rdma", "messages": 100}},
    {"send": {"from": "c", "to": "b", "bytes": "10 kB", "protocol": "udp"}},
    {"copy": {"from": "a", "to": "b", "bytes": "100 MB"}},
    {"copy": {"from": "a", "to": "c", "bytes": "100 MB"}},
    {"copy": {"from": "b", "to": "c", "bytes": "100 MB"}},
    {"copy": {"from": "c", "to": "a", "bytes": "100 MB"}},
)
TOO_FEW: Final = {
    "nic.lanes": (4, "lanes"),
    "nic.ports": (0, "ports"),
    "switch.ports": (2, "ports"),
    "switch.lanes": (16, "lanes"),
    "switch.nvlinks": (3, "nvlinks"),
}
EXAMPLES: Final = (
    *(_link(kind, number, keys) for kind, cls in links.KINDS.items() for number, keys in enumerate(cls.examples)),
    *(
        Example(f"{kind} of one direction at a time", machine(between("a", "b", kind, duplex="half", **keys), a=CPU, b=CPU), BOTH)
        for kind, keys in ((kind, cls.examples[0]) for kind, cls in links.KINDS.items())
    ),
    Example(
        "cards and a switch",
        machine(*CARDS, a=CPU, b=CPU, c=CPU, nic={**CARD, "count": 3}, leaf=SWITCH, more={"supply": "200 W"}),
        in_turn(*MESSAGES),
        refused=TOO_FEW,
    ),
    Example(
        "a switch at once",
        machine(
            *CARDS, a=CPU, b=CPU, c=CPU, nic={**CARD, "count": 3}, leaf={"kind": "switch", "oversubscription": 3.0, "lanes": 0}
        ),
        program(*MESSAGES),
    ),
    Example(
        "a tree of pcie",
        machine(
            between("cpu", "psw", "pcie", gen=3, lanes=16),
            {**between("psw", "gpu*", "pcie", gen=3, lanes=16), "per": 2},
            cpu=CPU,
            psw={"kind": "switch", "lanes": 48},
            gpu={**PLAIN_GPU, "count": 2},
        ),
        program(*({"copy": {"from": "cpu", "to": f"gpu{n}", "bytes": "1 MB"}} for n in (0, 1))),
        refused=TOO_FEW,
    ),
    Example(
        "an nvswitch",
        machine(
            between("gpu*", "sw", "nvlink", gen=3, links=2), sw={"kind": "switch", "nvlinks": 4}, gpu={**PLAIN_GPU, "count": 2}
        ),
        program({"copy": {"from": "gpu0", "to": "gpu1", "bytes": "1 MB"}}),
        refused=TOO_FEW,
    ),
    Example(
        "a link of the library",
        machine({"kind": "ethernet", "between": ["a", "b"], "use": "10gbe"}, a=CPU, b=CPU),
        program(*BOTH_WAYS),
        tried={"link.use": ("100gbe",), "link.between": (["b", "a"],)},
    ),
    Example(
        "pairs",
        machine(
            {**between("cpu*", "gpu*", "pcie", gen=3, lanes=16), "per": 2},
            between("cpu0", "cpu1"),
            cpu={**CPU, "count": 2},
            gpu={**PLAIN_GPU, "count": 4},
        ),
        program(*({"copy": {"from": "cpu0", "to": f"gpu{n}", "bytes": "1 MB"}} for n in range(4))),
        tried={"link.per": (4, 1)},
    ),
    Example(
        "a part that forwards",
        machine(
            between("gpu0", "gpu1", "nvlink", gen=2),
            between("gpu1", "gpu2", "nvlink", gen=2),
            between("cpu", "gpu*", "pcie", gen=3, lanes=16),
            cpu=CPU,
            gpu={**PLAIN_GPU, "count": 3, "forwards": True},
        ),
        program({"copy": {"from": "gpu0", "to": "gpu2", "bytes": "10 MB"}}),
    ),
    _cluster("ethernet", "star", hub="leaf", more={"leaf": {"kind": "switch", "latency": "300 ns"}, "other": {"kind": "switch"}}),
    _cluster("ethernet", "leaf-spine", leaf_ports=4, oversubscription=2.0, spines=2, switch=OF_A_SWITCH, routing="single"),
    _cluster(
        "ethernet", "fat-tree", leaf_ports=2, rails=2, oversubscription=2.0, pod=1, core_oversubscription=2.0, switch=OF_A_SWITCH
    ),
    _cluster("ethernet", "dragonfly", leaf_ports=2, routers=2, global_ports=1, switch=OF_A_SWITCH),
    _cluster("ethernet", "torus", size=[4, 2], wrap=True),
    _cluster(
        "ethernet",
        "tree",
        root=["root"],
        fan_out=[2, 4],
        switch=OF_A_SWITCH,
        more={"root": {"kind": "switch"}, "other": {"kind": "switch"}},
    ),
)
