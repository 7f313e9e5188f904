"""Architectures of models: for each the dimensions that its file writes, and the layers that follow from them.

A new architecture is a file here, and its name in the table and in the union below. Networks give their layers as units
(`chain`), which `unit_layers` turns into kernels. The kernels of transformers are made in `transformer_layers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwsim.models.architectures.cnn import Cnn
from hwsim.models.architectures.mlp import Mlp
from hwsim.models.architectures.transformer import Transformer

Network = Cnn | Mlp
Model = Transformer | Network
NETWORKS: Final[Mapping[str, type[Cnn] | type[Mlp]]] = {"cnn": Cnn, "mlp": Mlp}
__all__ = ["ARCHITECTURES", "NETWORKS", "Cnn", "Mlp", "Model", "Network", "Transformer"]
ARCHITECTURES: Final[Mapping[str, type[Transformer] | type[Cnn] | type[Mlp]]] = {**NETWORKS, "transformer": Transformer}
