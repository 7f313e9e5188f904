"""Quantised checkpoints: `hf_quant_config.json` beside a config, what of a model is narrow, and what `estimate` says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hwsim.models import load_transformer
from hwsim.models.memory import serving_memory
from hwsim.spec import SpecError
from tests.command import hwsim
from tests.config_values import of

LLAMA = of("llama", 4, 512, 8, 2, 1024, 1000)
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 256, "head_dim": 64}
MOE = {**of("qwen3_moe", 4, 512, 8, 2, 1024, 1000), **EXPERTS}
GATES = [f"model.layers.{index}.mlp.gate" for index in range(4)]
ATTENTION = [f"model.layers.{layer}.self_attn*" for layer in range(4)]


def checkpoint(folder: Path, config: dict[str, Any], **quantization: Any) -> str:
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    if quantization:
        beside = {"producer": {"name": "modelopt", "version": "0.30"}, "quantization": quantization}
        (folder / "hf_quant_config.json").write_text(json.dumps(beside, indent=2))
    return str(folder / "config.json")


def test_the_file_beside_a_config_is_read_with_it(tmp_path: Path) -> None:
    plain = load_transformer(checkpoint(tmp_path, LLAMA))
    model = load_transformer(
        checkpoint(tmp_path, LLAMA, quant_algo="FP8", kv_cache_quant_algo="FP8", exclude_modules=["lm_head"])
    )
    inside = load_transformer(
        checkpoint(tmp_path, {**LLAMA, "quantization_config": {"quant_method": "fp8"}}, quant_algo="NVFP4", group_size=16)
    )
    assert plain.quantised is None
    assert model.quantised is not None
    assert inside.quantised is not None
    assert (model.quantised.format, model.quantised.of, model.quantised.cache) == ("fp8", "linear", "fp8")
    assert inside.quantised.format == "fp8"  # what the config itself says goes first
    assert model.parameters == plain.parameters
    of_both = [serving_memory(variant, 2, 1000) for variant in (plain, model)]
    assert of_both[1].cache == of_both[0].cache / 2
    assert of_both[0].weights - of_both[1].weights == sum(kind.layers * kind.narrow for kind in model.kinds) / 2


@pytest.mark.parametrize(
    ("config", "excluded", "of_"),
    [(LLAMA, ["lm_head", "model.layers.4*"], "linear"), (MOE, GATES, "linear"), (MOE, [*GATES, *ATTENTION], "experts"),
     (MOE, ["re:.*self_attn.*", "re:.*lm_head"], "experts"), (MOE, ATTENTION[:1], "linear"),
     (LLAMA, ATTENTION, None), (MOE, ["model.layers.*.mlp*"], None), (LLAMA, ["model.layers.2.mlp.down_proj"], None)],
)  # fmt: skip
def test_modules_left_out_say_what_is_narrow(
    config: dict[str, Any], excluded: list[str], of_: str | None, tmp_path: Path
) -> None:
    path = checkpoint(tmp_path, config, quant_algo="NVFP4", group_size=16, exclude_modules=excluded)
    if of_ is None:
        with pytest.raises(SpecError, match=r"hf_quant_config\.json.*'exclude_modules' keeps parts of the layers in 16 bit"):
            load_transformer(path)
        return
    quantised = load_transformer(path).quantised
    assert quantised is not None
    assert (quantised.format, quantised.of, quantised.group) == ("nvfp4", of_, 16)


@pytest.mark.parametrize(
    ("keys", "said"),
    [({"quant_algo": "MIXED_PRECISION"}, "expected one format for all quantized weights"),
     ({"quant_algo": "INT3"}, "unknown quantization format 'INT3'")],
)  # fmt: skip
def test_what_cannot_be_said_is_refused_with_its_key(keys: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        load_transformer(checkpoint(tmp_path, LLAMA, **keys))
    assert "hf_quant_config.json:7:" in str(caught.value)


def test_the_file_alone_is_no_model(tmp_path: Path) -> None:
    checkpoint(tmp_path, LLAMA, quant_algo="FP8")
    alone = str(tmp_path / "hf_quant_config.json")
    for command in (["import", "huggingface", alone], ["estimate", "dgx-h100", alone, "--infer", "decode"]):
        assert "expected a config.json" in hwsim(*command, code=2).output
    (tmp_path / "hf_quant_config.json").write_text("{}")
    with pytest.raises(SpecError, match="'quantization' is missing"):
        load_transformer(str(tmp_path / "config.json"))


def test_an_estimate_is_of_the_checkpoint_and_says_so(tmp_path: Path) -> None:
    asked = ["--infer", "decode", "--batch", "16", "--prompt", "1000", "--json"]
    path = checkpoint(tmp_path, LLAMA)
    numbers = {}
    for name, algorithm, dtype in (
        ("bf16", "", []),
        ("dtype", "", ["--dtype", "fp8"]),
        ("fp8", "FP8", []),
        ("nvfp4", "NVFP4", []),
    ):
        said = {"quant_algo": algorithm, "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]} if algorithm else {}
        path = checkpoint(tmp_path, LLAMA, **said)
        result = hwsim("estimate", "dgx-h100", path, *asked, *dtype)
        numbers[name] = json.loads(result.stdout)
    memory = {name: number["memory"]["total"] for name, number in numbers.items()}
    assert memory["nvfp4"] < memory["fp8"] < memory["bf16"]
    assert memory["fp8"] > memory["dtype"]  # embeddings and the head are in 16 bits
    assert numbers["fp8"]["seconds"] == pytest.approx(numbers["dtype"]["seconds"], rel=1e-9)
    assert numbers["bf16"]["weights"] is None
    assert "linear maps of the layers in fp8, computed in fp8" in numbers["fp8"]["weights"]
    assert "keys and values in fp8" in numbers["fp8"]["weights"]
    assert "assumed: read so, and computed in bf16" in numbers["nvfp4"]["weights"]
