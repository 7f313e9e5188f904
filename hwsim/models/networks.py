"""Networks of convolutions and perceptrons by name: workloads/models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from hwsim.models.architectures.cnn import Cnn
from hwsim.models.architectures.mlp import Mlp
from hwsim.spec import Mistakes, Tree, decode, find, read, resolve

Network = Cnn | Mlp
NETWORKS: Final[Mapping[str, type[Cnn] | type[Mlp]]] = {"cnn": Cnn, "mlp": Mlp}
_ENTRY: Final = frozenset({"hwsim", "kind", "name", "notes", "use", "let"})


def load_network(name: str, relative_to: Path | None = None) -> Network:
    """The network of the library called that, or of a file.

    >>> load_network("resnet-50").parameters
    25557032

    Raises:
        SpecError: there is no such file, or it has mistakes.
    """
    return read_network(read(find("model", name, relative_to)))


def read_network(tree: Tree) -> Network:
    """The network that a file (or the `model:` of a workload) writes.

    Raises:
        SpecError: all its mistakes.
    """
    mistakes = Mistakes()
    whole = resolve(tree, mistakes, kind="model")
    mistakes.raise_if_any()
    kind = whole.text("kind")
    if kind not in NETWORKS:
        mistakes.add(whole.place, f"'{kind}' is no kind of network here", f"one of {', '.join(NETWORKS)}")
    mistakes.raise_if_any()
    found: Network | None = decode(whole, NETWORKS[str(kind)], mistakes, ignore=_ENTRY, sourced=True)
    mistakes.raise_if_any()
    if found is None:
        raise TypeError("no network was read, and no mistake noted")
    return found


def described(network: Network) -> Iterator[str]:
    """What follows from its layers, a line each."""
    count = network.parameters
    yield f"parameters: {count:,}; in 32 bit {4 * count / 1e6:.4g} MB"
    flop = network.forward_flop / 1e9
    yield f"operations of one example: forward {flop:.4g} GFLOP, training {3 * flop:.4g} GFLOP"
