"""Write docs/validation/traces.md: published profiles of GPUs, predicted anew on the parts that they ran on.

python -m scripts.traces DATA        DATA: folder with the profiles in traces/gpu
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import wrap
from typing import Final, NamedTuple

from hwsim.formats import format_quantity, format_share
from hwsim.importers.answers import WorkSum, answer
from hwsim.importers.formats import read
from hwsim.importers.predicting import predict
from hwsim.importers.replay import explain
from hwsim.models.library import load_network
from hwsim.prepare import load_machine
from scripts.network_shapes import shaped

PAGE: Final = Path(__file__).parents[1] / "docs" / "validation" / "traces.md"
HEAD: Final = """# Profiles predicted anew

Published profiles of PyTorch on GPUs, each predicted with `hwsim import kineto FILE... --machine MACHINE` on the part that
it ran on. Nothing was fitted to them. Written by `python -m scripts.traces DATA`.

*recorded* and *predicted* are seconds of all kernels of a kind of work on all GPUs, and of collectives their transfers;
*ratio* is the second over the first. Ops without shapes, or that no statement of the workload language says, keep their
recorded time and are not in the ratio: *kept* is their share. *range* is hwsim's own: nine of ten such times should lie in
it.
"""


class Profile(NamedTuple):
    """A published run: files, source, the machine that it is predicted on, its network and batch, and what was found."""

    title: str
    files: tuple[str, ...]
    source: str
    machine: str
    model: str
    batch: int
    notes: tuple[str, ...]


PROFILES: Final = (
    Profile(
        "ResNet-18 on a GeForce RTX 2080 Ti",
        ("param_RTX2080Ti_resnet.json.gz",),
        "30 steps of torchvision's ResNet-18 in fp32, 128 images each; facebookresearch/param, tests of et_replay",
        "workstation",
        "resnet-18",
        128,
        (
            "The file has no shapes: they are the network's.",
            (
                "Kernels of convolutions with Winograd transforms do up to 2.1 times the operations of the peak. The rule "
                "that chooses them is hwsim's for every GPU without matrix units for fp32; its constants are from "
                "published trainings and inference on other GPUs (`hwsim/devices/convolution_speeds.py`)."
            ),
            (
                "Gradients of convolutions with stride 2 take twice as long as their products, those of 1 x 1 up to four "
                "times: cuDNN runs other kernels for them (`dgrad_engine`, `wgrad_alg0_engine`), of which hwsim has no "
                "rule."
            ),
            (
                "PyTorch's gradient of max pooling walks the windows of every pixel: it is far from the memory's rate, "
                "which is assumed."
            ),
            "Pageable copies: no rate is stated for this part. They are taken as a copy by a core and one by the link.",
        ),
    ),
    Profile(
        "ResNet-50 on one of two A100",
        ("hta_A100_ddp_2rank_nccl_r0.json.gz",),
        "3 steps of data parallel training, one rank of two; facebookresearch/HolisticTraceAnalysis, tests",
        "dgx-a100",
        "resnet-50",
        32,
        (
            (
                "The file has shapes of collectives alone; 32 images are guessed from the times of pointwise kernels, so "
                "these say little."
            ),
            ("The second rank was not recorded: kernels of collectives have its waiting in them, the prediction has none."),
            (
                "Convolutions in TF32: constants were fitted to whole trainings, which copy every image to another order. "
                "cuDNN copies fewer."
            ),
            (
                "Batch norms take 1.4 times as long as four reads and a write: cuDNN's kernels of one pass do not reach "
                "the memory's rate."
            ),
        ),
    ),
    Profile(
        "DLRM on eight V100",
        tuple(f"dlrm_V100x8_rank{rank}.json.gz" for rank in range(8)),
        "a step of a recommendation model with 128 examples, eight ranks; facebookresearch/param",
        "p3.16xlarge",
        "",
        0,
        (
            ("The file counts whole microseconds, and kernels take two or three of them; the profiler's own time is in them."),
            "Kernels of FBGEMM (embedding tables) have no statement and keep their times.",
            "Ranges are wide: nothing that was measured is like kernels of a few microseconds under a profiler.",
        ),
    ),
    Profile(
        "A recommendation model on A100, two ranks of 128",
        ("hta_sampled_128rank_r0.json.gz", "hta_sampled_128rank_r1.json.gz"),
        "sampled ranks of a production training; facebookresearch/HolisticTraceAnalysis, tests",
        "dgx-a100",
        "",
        0,
        (("Collectives among 128 ranks keep their times: the machine has eight GPUs, and the files have no sizes of most."),),
    ),
)


def main(data: Path) -> None:
    """Predict every profile and write the page."""
    lines = [HEAD]
    for profile in PROFILES:
        recording = read("kineto", [data / "traces" / "gpu" / name for name in profile.files])
        if profile.model:
            recording, _ = shaped(recording, load_network(profile.model), profile.batch)
        found = answer(predict(explain(recording), load_machine(profile.machine)))
        lines += [f"## {profile.title}", "", f"{profile.source[0].upper()}{profile.source[1:]}. On `{profile.machine}`.", ""]
        lines += ["| work | recorded | predicted | ratio | range | inside | kept |", "|---|---|---|---|---|---|---|"]
        lines += [_row(each) for each in (*found.kinds, found.gpu) if each.recorded > 0.001 * found.gpu.recorded]
        lines += ["", *(line for note in profile.notes for line in wrap(f"- {note}", 126, subsequent_indent="  ")), ""]
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _row(each: WorkSum) -> str:
    kept = format_share(each.kept / each.recorded) if each.kept > 0 else ""
    name = "**all**" if each.name == "all" else each.name
    if each.kept >= each.time:
        return f"| {name} | {_s(each.recorded)} | | | | | {kept} |"
    inside = "yes" if each.range.low <= each.recorded <= each.range.high else "no"
    span = f"{_s(each.range.low)} to {_s(each.range.high)}"
    return f"| {name} | {_s(each.recorded)} | {_s(each.time)} | {each.ratio:.2f} | {span} | {inside} | {kept} |"


def _s(seconds: float) -> str:
    return format_quantity(seconds, "s")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
