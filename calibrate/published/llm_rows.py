"""Published LLM training runs as plans on machines of the library."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim import api
from hwsim.models import Cluster, ParallelPlan, Transformer, cluster_of
from published.parts import table

_NODES: Final = """
hwsim: machine/1
parts: {{node: {{kind: machine, use: {node}, count: 2, parts: {{{parts}}}}}}}
links: [{{name: fabric, topology: fat-tree, of: "node*.nic*", kind: infiniband, use: {network}, rails: {cards}, leaf_ports: 40}}]
"""
# Nodes that are in no catalogue: GPUs on one switch, NICs, and a fabric.
_PLAIN: Final = """
hwsim: machine/1
parts:
  node:
    kind: machine
    count: 2
    parts:
      gpu: {{kind: gpu, use: {gpu}, count: {gpus}{more}}}
      nvs: {{kind: switch, reduces: {adds}}}
      out: {{kind: switch}}
    links:
      - {{between: [gpu*, nvs], kind: nvlink, {nvlink}}}
      - {{between: [gpu*, out], kind: direct, bandwidth: {each}}}
  fabric: {{kind: switch}}
links: [{{between: [node*.out, fabric], kind: direct, bandwidth: {whole}}}]
"""
_A100: Final = "gen: 3, links: 12"
_H100: Final = "gen: 4, links: 18"
_SMALL: Final = ", memory: {size: 96 GiB, bandwidth: 2.4 TB/s}, power: 500 W"


def plain(gpu: str, gpus: int, nvlink: str, cards: int, card: str, more: str = "") -> str:
    """Return the text of a machine of two nodes: GPUs on a switch, and NICs on a fabric."""
    rate = float(card.split(maxsplit=1)[0])
    each, whole = f"{rate * min(1.0, cards):g} GB/s", f"{rate * cards:g} GB/s"
    adds = "true" if nvlink == _H100 else "false"
    return _PLAIN.format(gpu=gpu, gpus=gpus, nvlink=nvlink, each=each, whole=whole, more=more, adds=adds)


# Beginning of the hardware column: machine. NIC bandwidths are from datasheets.
MACHINES: Final[Mapping[str, str]] = {
    "NVIDIA A100-SXM4-80GB, DGX A100": _NODES.format(
        node="dgx-a100", parts="gpu: {use: a100-sxm-80gb}", network="hdr200", cards=8
    ),
    "NVIDIA A100-SXM4-80GB (Selene)": _NODES.format(
        node="dgx-a100", parts="gpu: {use: a100-sxm-80gb}", network="hdr200", cards=8
    ),
    "NVIDIA A100-SXM4-40GB, DGX A100": _NODES.format(node="dgx-a100", parts="", network="hdr200", cards=8),
    "NVIDIA H100 SXM5 80GB, DGX/EOS": _NODES.format(node="dgx-h100", parts="", network="ndr400", cards=8),
    "NVIDIA H100 SXM5 80GB": plain("h100-sxm", 8, _H100, 8, "50 GB/s"),
    "NVIDIA V100-SXM3-32GB, DGX-2": plain("v100-sxm2-32gb", 16, "gen: 2, links: 6", 8, "12.5 GB/s"),
    "NVIDIA A100-SXM4-80GB; 1600 Gb/s": plain("a100-sxm-80gb", 8, _A100, 8, "25 GB/s"),
    "NVIDIA A100-SXM4-40GB; 1600 Gb/s": plain("a100-sxm-40gb", 8, _A100, 8, "25 GB/s"),
    "NVIDIA H100 96GB HBM2e": plain("h100-sxm", 8, _H100, 8, "50 GB/s", _SMALL),
    "NVIDIA A100-SXM4-80GB, 4x100Gb": plain("a100-sxm-80gb", 8, _A100, 4, "12.5 GB/s"),
    "NVIDIA A100-SXM4-80GB, 8 per node, 4x Omni": plain("a100-sxm-80gb", 8, _A100, 4, "12.5 GB/s"),
    "NVIDIA V100-SXM2-32GB, 4 per node": plain("v100-sxm2-32gb", 4, "gen: 2, links: 6", 4, "12.5 GB/s"),
}
NEEDED: Final = ("layers", "hidden", "ffn", "vocab", "seq", "global_batch", "tp", "pp", "dp")
CHUNKS: Final[Mapping[int, int]] = {2: 3, 8: 2, 64: 1}  # for the runs of Narayanan et al., whose table states only "interleaving"


@dataclass(frozen=True, slots=True)
class Row:
    """One published run. seconds: time of a step, computed from the published quantity."""

    id: str
    source: str
    group: str
    software: str
    model: Transformer
    plan: ParallelPlan
    machine: str
    gpus: int
    seconds: float
    said: str

    @property
    def size(self) -> float:
        """Sort key: work of a step per GPU, with further values for equal runs."""
        tokens = self.plan.global_batch * (self.plan.sequence or 1)
        return tokens * self.model.parameters / self.gpus * (1 + 1e-6 * self.plan.microbatch + 1e-9 * self.gpus)

    @property
    def cluster(self) -> Cluster:
        return cluster(self.machine, self.gpus)

    def name(self) -> str:
        plan = self.plan
        return f"{self.id}: {self.said}, {self.gpus} GPUs, tp {plan.tp} pp {plan.pp} b {plan.microbatch} s {plan.sequence}"


@functools.cache
def _two_nodes(text: str) -> Cluster:
    return cluster_of(api.load_machine(text))


@functools.cache
def cluster(text: str, gpus: int) -> Cluster:
    """Return a number of GPUs of a machine; the values of two nodes hold for all nodes."""
    found = _two_nodes(text)
    return replace(found, gpus=gpus, per_node=min(gpus, found.per_node))


def rows(data: Path) -> list[Row]:
    """Return the unflagged rows with complete dimensions."""
    found = table(data / "validation" / "07_llm_train.csv")
    return [_row(row) for row in found if not row["flag"] and all(row[key] for key in NEEDED)]


def _software(said: Mapping[str, str]) -> str:
    name = said["software"]
    match name:
        case _ if "MosaicML" in name:
            return "composer"
        case _ if "torchtitan" in said["source"]:
            if "rowwise" in said["precision"]:
                return "torchtitan-rowwise"
            return "torchtitan" if name == "FSDP" else "torchtitan-async-tp" if "async" in name else "torchtitan-compile"
        case _ if "InternEvo" in name:
            return "internevo"
        case _ if "Megatron-Core" in name:
            return "megatron-core"
        case _ if name == "DeepSpeed ZeRO-3":
            return "deepspeed-zero3"
        case _ if "Megatron-DeepSpeed" in name:
            return "megatron-deepspeed"
        case _:
            return "megatron"


def _number(said: Mapping[str, str], key: str, default: int) -> int:
    return round(float(said[key])) if said[key] else default


def _row(said: Mapping[str, str]) -> Row:
    hidden, layers = _number(said, "hidden", 0), _number(said, "layers", 0)
    llama = "lama" in said["model"] or "InternLM" in said["model"]
    mosaic = "Mosaic" in said["software"]
    heads = _number(said, "heads", _heads(hidden, _number(said, "tp", 1)))
    model = Transformer(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=_number(said, "kv_heads", heads) if heads % max(1, _number(said, "kv_heads", heads)) == 0 else heads,
        head=max(1, hidden // heads),
        ffn=_number(said, "ffn", 4 * hidden),
        gated=llama,
        vocab=_number(said, "vocab", 50257),
        tied=not llama,
        sequence=_number(said, "seq", 2048),
        positions="rotary" if llama else "alibi" if mosaic else "learned",
        norm="rmsnorm" if llama else "layernorm",
        bias=not (llama or mosaic),
        dropout="Megatron" in said["software"] and "Core" not in said["software"],
    )
    plan = _plan(said, model)
    hardware = said["hardware"]
    machine = next(text for start, text in MACHINES.items() if hardware.startswith(start))
    gpus = _number(said, "count", 1)
    source = re.sub(r"[:@;(].*", "", said["source"]).removesuffix(" Table 1").removesuffix(" Table 2").strip()
    return Row(
        said["id"],
        source,
        f"{source}, {hardware}",
        _software(said),
        model,
        plan,
        machine,
        gpus,
        _seconds(said, model),
        said["model"],
    )


def _heads(hidden: int, tp: int) -> int:
    """Return the number of heads if the source does not state it: a width of 128, or the nearest with whole heads per GPU.

    >>> _heads(14336, 8), _heads(13824, 8)
    (112, 96)
    """
    found = [count for count in range(tp, hidden // 32, tp) if hidden % count == 0 and hidden // count % 8 == 0]
    return min(found, key=lambda count: (abs(count - hidden / 128), count), default=tp)


def _plan(said: Mapping[str, str], model: Transformer) -> ParallelPlan:
    tp, pp, dp = _number(said, "tp", 1), _number(said, "pp", 1), _number(said, "dp", 1)
    cp = _number(said, "cp", 1)
    count, micro = _number(said, "count", 1), _number(said, "micro_batch", 1)
    chunks = _number(said, "vpp", 1)
    if "Narayanan" in said["source"] and pp > 1 and not said["vpp"]:
        chunks = CHUNKS.get(pp, 1)
    if "Megatron-Core" in said["software"] and pp > 1:
        chunks = max(v for v in (1, 2, 3, 4, 6, 7) if (model.layers // pp) % v == 0)
    batch = _number(said, "global_batch", 1)
    if tp * pp * dp * cp != count and tp * pp * dp == count:
        cp = 1
    dp = count // (tp * pp * cp)
    batch = max(dp * micro, batch // (dp * micro) * dp * micro)
    zero = said["zero_or_sharding"]
    level = "fsdp" if "FULL_SHARD" in zero or "FSDP" in zero else "zero-3" if "ZeRO-3" in zero else "zero-0"
    if "ZeRO-1" in zero or "distributed" in zero:
        level = "zero-1"
    recompute = said["recompute"]
    kind = "full" if recompute.startswith("full") else "none"
    if recompute.startswith("selective") and "not stated" not in recompute:
        kind = "selective"
    core = "Megatron-Core" in said["software"] or "torchtitan" in said["source"]
    return ParallelPlan(
        tp=tp,
        pp=pp,
        dp=dp,
        cp=cp,
        microbatch=micro,
        global_batch=batch,
        sequence=model.sequence,
        schedule="interleaved" if chunks > 1 else "1f1b",
        chunks=chunks,
        uneven=bool(model.layers % pp),
        sequence_parallel=tp > 1 and (core or "sequence parallel" in recompute),
        sharding=level,  # type: ignore[arg-type]
        shards=8 if "over 8" in zero else None,
        recompute=kind,  # type: ignore[arg-type]
        dtype="fp8" if "fp8" in said["precision"] else "fp16" if said["precision"] == "fp16" else "bf16",
    )


def _seconds(said: Mapping[str, str], model: Transformer) -> float:
    """Return the time of a step; throughputs are converted by their source's formula."""
    value, batch, gpus = float(said["value"]), float(said["global_batch"]), float(said["count"])
    layers, h, s, v = model.layers, model.hidden, model.sequence, model.vocab
    if said["metric"] == "time_per_iteration":
        return value
    if said["metric"] == "tokens/s per GPU":
        return batch * s / value / gpus
    if said["metric"].startswith("model+recompute"):
        return 96 * batch * s * layers * h * h * (1 + s / (6 * h) + v / (16 * layers * h)) / value / gpus
    return 72 * batch * s * layers * h * h * (1 + s / (6 * h) + v / (12 * layers * h)) / value / gpus
