"""Closed-form models: parameters, kernels and exchanges of each layer, memory, parallel plans, and the time of a step.

    model = load_transformer("llama-3-70b")
    plan = ParallelPlan(tp=8, pp=4, global_batch=1024, sharding="zero-1")
    estimate(model, plan, cluster_of(machine), load_framework("megatron-core"))

The functions have no side effects and do not run the simulator. Devices are not named before `Cluster`.
"""

from __future__ import annotations

from hwsim.models.architectures.slices import MicrobatchSlice
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.architectures.transformer_layers import backward, embedding, forward, output
from hwsim.models.cluster import Cluster, UnequalCluster, cluster_of
from hwsim.models.framework import Framework, load_framework
from hwsim.models.generations import GENERATIONS
from hwsim.models.inference import one_pass
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Kernel
from hwsim.models.library import load_network, load_transformer
from hwsim.models.memory import Footprint, activations, training_memory
from hwsim.models.plan import DerivedPlan, ParallelPlan, WrongPlan, derive_plan
from hwsim.models.stages import stage_of
from hwsim.models.step import TrainingStep, estimate, step

__all__ = [
    "GENERATIONS",
    "Cluster",
    "DerivedPlan",
    "Footprint",
    "Framework",
    "Kernel",
    "KernelTimes",
    "MicrobatchSlice",
    "ParallelPlan",
    "TrainingStep",
    "Transformer",
    "UnequalCluster",
    "WrongPlan",
    "activations",
    "backward",
    "cluster_of",
    "derive_plan",
    "embedding",
    "estimate",
    "forward",
    "load_framework",
    "load_network",
    "load_transformer",
    "one_pass",
    "output",
    "stage_of",
    "step",
    "training_memory",
]
