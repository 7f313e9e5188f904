"""The facts of a Chakra node besides its times: bytes, collective, and counted operations and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwsim.importers.chakra_nodes import COLLECTIVES, ChakraNodeKind, Value, number_of
from hwsim.importers.recording import RecordedCollective, SliceFacts, What

COMMUNICATION: Final = frozenset({ChakraNodeKind.SEND, ChakraNodeKind.RECV, ChakraNodeKind.COLLECTIVE})
MEMORY: Final = frozenset({ChakraNodeKind.MEM_LOAD, ChakraNodeKind.MEM_STORE})


class FactTable:
    """A table of the facts of the nodes of a rank.

    Args:
        groups: ranks of each process group.
        world: number of ranks in the job; 0 if unknown.
    """

    def __init__(self, groups: Mapping[str, tuple[int, ...]], world: int) -> None:
        self.groups, self.world = groups, world
        self.numbers: dict[SliceFacts, int] = {}

    def number(self, node: Any, values: Mapping[str, Value], kind_of: What) -> int:
        """Return the index of the facts of a node in `numbers`; -1 if it has none."""
        asking = bool(values.get("is_cpu_op")) and "comm_type" not in values  # a CPU op that launches a collective
        collective = self._collective(node, values) if node.type in COMMUNICATION and not asking else None
        moved = (
            number_of((values.get("comm_size"),))
            if collective
            else number_of((values.get("tensor_size"),)) * (kind_of is What.COPY)
        )
        facts = SliceFacts(
            bytes=moved,
            collective=collective,
            kind=("load" if node.type == ChakraNodeKind.MEM_LOAD else "store") if node.type in MEMORY else "",
            counted=_counted(values),
        )
        return -1 if facts == SliceFacts() else self.numbers.setdefault(facts, len(self.numbers))

    def _collective(self, node: Any, values: Mapping[str, Value]) -> RecordedCollective:
        moved = number_of((values.get("comm_size"),))
        if node.type != ChakraNodeKind.COLLECTIVE:
            sends = node.type == ChakraNodeKind.SEND
            peer = number_of((values.get("comm_dst" if sends else "comm_src"),), -1)
            tag = number_of((values.get("comm_tag"),))
            return RecordedCollective("send" if sends else "recv", moved, moved, "int8", size=2, peer=peer, tag=tag)
        group = str(values.get("pg_name", ""))
        ranks = self.groups.get(group, ())
        size = len(ranks) or number_of((values.get("hwsim.ranks"),), 0 if group else self.world)
        name = _called(node, values)
        out = moved * size if name == "allgather" else moved // max(1, size) if name == "reduce-scatter" else moved
        return RecordedCollective(name, moved, out, "int8", ranks, size, group)  # sizes are in bytes, for any data type


def _counted(values: Mapping[str, Value]) -> tuple[float, float] | None:
    """Return the operations and bytes of a node; None if the file does not count its operations."""
    flop, moved = values.get("num_ops"), values.get("tensor_size", 0)
    return (float(flop), float(moved)) if isinstance(flop, int | float) and isinstance(moved, int | float) else None


def _called(node: Any, values: Mapping[str, Value]) -> str:
    """Return the collective by type, else by kernel name; "" if unknown."""
    if "comm_type" in values:
        number = number_of((values["comm_type"],))
        return COLLECTIVES[number] if 0 <= number < len(COLLECTIVES) else ""
    plain = node.name.replace("_", "").replace("-", "").lower()
    return next((name for name in COLLECTIVES if name.replace("-", "") in plain and name != "reduce"), "")
