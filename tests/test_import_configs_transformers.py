"""Parameters of random small configs: as many as transformers builds (where it and torch are installed)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwsim.models.configs import as_tree, read_config
from hwsim.models.library import read_transformer
from tests.config_cases import DRAWN, configs

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
WITHOUT_HEAD = ("bert", "roberta", "vit")


def built(keys: dict[str, Any], path: Path) -> int:
    """Parameters of the model that transformers builds; its config is written to the path."""
    family = keys["model_type"]
    config = transformers.AutoConfig.for_model(family, **{key: each for key, each in keys.items() if key != "model_type"})
    path.write_text(json.dumps({**config.to_dict(), "model_type": family}, default=str))
    automatic = transformers.AutoModel if family in WITHOUT_HEAD else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        network = automatic.from_config(config, **({"add_pooling_layer": False} if family == "vit" else {}))
    return sum(each.numel() for each in network.parameters())


@pytest.mark.parametrize("family", sorted(DRAWN))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(data=st.data())
def test_parameters_are_those_of_transformers(family: str, data: st.DataObject, tmp_path: Path) -> None:
    keys = data.draw(configs(family))
    path = tmp_path / "config.json"
    expected = built(keys, path)
    made = read_config(path)
    model = read_transformer(as_tree(made))
    assert model.parameters - model.classes * (model.hidden + 1) == expected, keys
    assert not made.unknown
