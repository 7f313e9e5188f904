"""Architectures of models: the dimensions in the file of each architecture, and the layers that follow from them.

A new architecture is a module here and a line in `ARCHITECTURES`. A CNN or MLP returns its layers as units
(`FeedForwardNetwork.chain`), which `unit_layers` converts to kernels. `transformer_layers` creates the kernels of transformers.
"""

from __future__ import annotations

from typing import Final

from hwsim.models.architectures.network import FeedForwardNetwork
from hwsim.models.architectures.transformer import Transformer
from hwsim.spec.kinds import KindTable

Model = Transformer | FeedForwardNetwork
ARCHITECTURES: Final = KindTable[type[Transformer] | type[FeedForwardNetwork]](
    {
        "cnn": f"{__name__}.cnn:Cnn",
        "mlp": f"{__name__}.mlp:Mlp",
        "transformer": f"{__name__}.transformer:Transformer",
    }
)

__all__ = ["ARCHITECTURES", "FeedForwardNetwork", "Model", "Transformer"]
