"""Architectures of models: for each the dimensions that its file writes, and the layers that follow from them.

A new architecture is a file here and a line in `ARCHITECTURES`. A network gives its layers as units (`Network.chain`), which
`unit_layers` turns into kernels. The kernels of transformers are made in `transformer_layers`.
"""

from __future__ import annotations

from typing import Final

from hwsim.models.architectures.network import Network
from hwsim.models.architectures.transformer import Transformer
from hwsim.spec.kinds import Kinds

Model = Transformer | Network
ARCHITECTURES: Final = Kinds[type[Transformer] | type[Network]](
    {
        "cnn": f"{__name__}.cnn:Cnn",
        "mlp": f"{__name__}.mlp:Mlp",
        "transformer": f"{__name__}.transformer:Transformer",
    }
)

__all__ = ["ARCHITECTURES", "Model", "Network", "Transformer"]
