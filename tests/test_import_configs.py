"""Configs of Hugging Face as models: the published parameters, what came from where, and mistakes with their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.models import Transformer, load_transformer
from hwsim.models.configs import as_tree, model_yaml, read_config
from hwsim.models.configs.families import FAMILIES
from hwsim.models.library import read_model
from hwsim.spec import SpecError, read
from tests.command import hwsim
from tests.config_cases import DRAWN, configs
from tests.config_values import ACTIVE, PARAMETERS, of
from tests.each import each

LLAMA = of("llama", 4, 512, 8, 2, 1024, 1000)


def put(tmp_path: Path, keys: Any, name: str = "config.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(keys, indent=2))
    return path


def model_of(path: Path) -> Transformer:
    model = read_model(as_tree(read_config(path)))
    assert isinstance(model, Transformer)
    return model


# ---- parameters ----


@each("name", PARAMETERS)
def test_parameters_are_the_published_ones(name: str, tmp_path: Path) -> None:
    keys, parameters = PARAMETERS[name]
    made = read_config(put(tmp_path, keys))
    model = read_model(as_tree(made))
    assert model.parameters == parameters
    assert made.unknown == ()
    if name in ACTIVE:
        assert isinstance(model, Transformer)
        assert model.active_parameters / 1e9 == pytest.approx(ACTIVE[name], abs=0.011)


@each("name", PARAMETERS)
def test_what_is_written_is_the_same_model(name: str, tmp_path: Path) -> None:
    made = read_config(put(tmp_path, PARAMETERS[name][0]))
    text = model_yaml(made, "config of Hugging Face, config.json")
    assert read_model(read(text)) == read_model(as_tree(made))


@pytest.mark.parametrize("family", sorted(DRAWN))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_every_config_is_a_model_or_a_mistake(family: str, data: st.DataObject, tmp_path: Path) -> None:
    path = put(tmp_path, data.draw(configs(family)))
    model = model_of(path)
    assert model.parameters >= model.active_parameters > 0
    assert sum(kind.layers for kind in model.kinds) == model.layers == len(model.order)


def test_every_family_has_cases() -> None:
    assert set(FAMILIES) - set(DRAWN) == {"kimi_k2"}  # as deepseek_v3, and unknown to transformers


@pytest.mark.parametrize(
    ("library", "config"),
    [("llama-3-70b", "llama-3.1-70b"), ("mixtral-8x7b", "mixtral-8x7b"), ("deepseek-v3", "deepseek-v3"),
     ("gpt-oss-120b", "gpt-oss-120b"), ("qwen3-235b-a22b", "qwen3-235b-a22b"), ("gemma-2-2b", "gemma-2-2b")],
)  # fmt: skip
def test_models_of_the_library_are_those_of_their_configs(library: str, config: str, tmp_path: Path) -> None:
    ours, theirs = load_transformer(library), model_of(put(tmp_path, PARAMETERS[config][0]))
    assert (ours.parameters, ours.active_parameters) == (theirs.parameters, theirs.active_parameters)
    assert [(kind.layers, kind.layer_parameters) for kind in ours.kinds] == [
        (kind.layers, kind.layer_parameters) for kind in theirs.kinds
    ]


# ---- kinds of layers ----


def test_windows_come_in_the_pattern_of_the_family(tmp_path: Path) -> None:
    gemma = model_of(put(tmp_path, PARAMETERS["gemma-3-1b"][0]))
    assert gemma.order == tuple(int((index + 1) % 6 == 0) for index in range(26))
    assert [kind.window for kind in gemma.kinds] == [512, None]
    oss = model_of(put(tmp_path, PARAMETERS["gpt-oss-20b"][0]))
    assert [(kind.window, kind.layers) for kind in oss.kinds] == [(128, 12), (None, 12)]
    types = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    keys = {**LLAMA, "model_type": "gemma2", "head_dim": 64, "sliding_window": 32, "layer_types": types}
    assert model_of(put(tmp_path, keys)).order == (0, 1, 1, 0)


def test_dense_layers_stand_where_the_config_says(tmp_path: Path) -> None:
    keys = {**PARAMETERS["qwen3-30b-a3b"][0], "num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [3]}
    model = model_of(put(tmp_path, keys))
    assert [model.kinds[kind].experts for kind in model.order] == [1, 128, 1, 1, 1, 128]


def test_the_language_model_of_a_config_with_images_is_said_to_be_alone(tmp_path: Path) -> None:
    made = read_config(put(tmp_path, PARAMETERS["llama-4-scout"][0]))
    assert made.notes == ("language model only (`text_config`); vision_config omitted",)


# ---- formats of weights ----


@pytest.mark.parametrize(
    ("config", "format_", "width"),
    [({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", 1 + 4 / 16384), ({"quant_method": "fp8"}, "fp8", 1.0),
     ({"quant_method": "mxfp4"}, "mxfp4", 0.5 + 1 / 32),
     ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", 0.5 + 2.5 / 128),
     ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", 1.0),
     ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", 0.5 + 1 / 16),
     ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8", 1.0),
     ({"quant_method": "compressed-tensors", "config_groups": {"all": {"weights": {"num_bits": 8, "type": "float"}}}},
      "fp8", 1.0)],
)  # fmt: skip
def test_weights_have_the_format_that_they_are_published_in(
    config: dict[str, Any], format_: str, width: float, tmp_path: Path
) -> None:
    quantised = model_of(put(tmp_path, {**LLAMA, "quantization_config": config})).quantised
    assert quantised is not None
    assert quantised.format == format_
    assert quantised.width == pytest.approx(width)


# ---- mistakes ----


@pytest.mark.parametrize(
    ("keys", "said"),
    [({"model_type": "lama"}, "2:17: unknown model family 'lama'"),
     ({"model_type": "whisper"}, "'whisper' is not supported: it has a decoder with cross-attention to an encoder"),
     ({"model_type": "mamba2"}, "state-space layers (Mamba)"),
     ({"model_type": "qwen3_5_text"}, "linear attention (gated DeltaNet"),
     ({"num_hidden_layers": None}, "'num_hidden_layers' (or n_layer"),
     ({"num_hidden_layers": "four"}, "3:24: 'num_hidden_layers': expected a whole number, got 'four'"),
     ({"hidden_size": 0}, "4:18: 'hidden_size': expected 1 to"),
     ({"hidden_size": 10**12}, "'hidden_size': expected 1 to"),
     ({"attention_bias": "yes"}, "'attention_bias': expected true or false"),
     ({"num_key_value_heads": 3}, "3 KV heads do not divide 8 attention heads"),
     ({"num_attention_heads": 7}, "7 heads do not divide a hidden size of 512"),
     ({"layer_types": ["full_attention", "linear_attention"]}, "unsupported layer type 'linear_attention'"),
     ({"quantization_config": {"quant_method": "magic"}}, "unknown quantization method 'magic'"),
     ({"quantization_config": {"bits": 4}}, "'quant_method' is missing"),
     ({"quantization_config": {"quant_method": "gptq", "bits": 3}}, "expected 4 or 8 bits, got 3"),
     ({"text_config": 3}, "'text_config': expected a mapping, got 3"),
     ({"text_config": {"model_type": "t5"}}, "'t5' is not supported: it has a decoder with cross-attention to an encoder"),
     ({"model_type": "gemma4_text", "hidden_size_per_layer_input": 256}, "per-layer input embeddings"),
     ({"model_type": "gemma2", "head_dim": 64, "layer_types": ["full_attention"]}, "has 1 entries, but the model has 4 layers"),
     ({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 5}, "`top_k` 5 exceeds the number of experts")],
)  # fmt: skip
def test_a_mistake_has_its_place(keys: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = put(tmp_path, {**LLAMA, **keys})
    with pytest.raises(SpecError) as caught:
        model_of(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


# ---- the command ----


def test_the_command_writes_a_model_and_says_what_it_left_out(tmp_path: Path) -> None:
    keys = {**PARAMETERS["deepseek-v3"][0], "rope_theta": 10000, "strange_key": 3}
    path, out = put(tmp_path, keys), tmp_path / "model.yaml"
    found = hwsim("import", "huggingface", str(path), "-o", str(out))
    assert "671,026,404,352" in found.stdout
    text = out.read_text()
    assert "top_k: 8  # num_experts_per_tok" in text
    assert "# unknown keys, ignored: strange_key" in text
    assert "rope_theta" in text
    assert load_transformer(str(out)) == model_of(path)
    document = json.loads(hwsim("import", "huggingface", str(path), "--json").stdout)
    assert (document["hwsim"], document["parameters"]) == ("imported-model/1", 671_026_404_352)
    assert document["not_heeded"] == ["strange_key"]


def test_a_workload_and_an_estimate_name_a_config_itself(tmp_path: Path) -> None:
    put(tmp_path, LLAMA, "small.json")
    workload = tmp_path / "serve.yaml"
    workload.write_text(
        "hwsim: workload/1\ninfer: {model: small.json, device: gpu0, requests: 2, prompt: 64, output: 4, arrivals: all at once}\n"
    )
    assert api.simulate("dgx-h100", str(workload)).serving
    found = hwsim("estimate", "dgx-h100", str(tmp_path / "small.json"), "--global-batch", "64")
    assert "8 GPUs" in found.stdout
    shown = hwsim("show", str(tmp_path / "small.json"))
    assert "layers: 4" in shown.stdout
    (tmp_path / "small.json").write_text(json.dumps({**LLAMA, "hidden_size": "x"}))
    wrong = hwsim("estimate", "dgx-h100", str(tmp_path / "small.json"), "--global-batch", "64", code=2)
    assert "small.json:1:" in wrong.output
