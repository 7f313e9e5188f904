"""Write docs/validation/traces.md: published GPU profiles, predicted on the same kind of GPU.

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
HEAD: Final = """# Recorded GPU profiles: predictions against recordings

**For four published PyTorch profiles, the predicted GPU time is 0.77 to 0.85 times the recorded time, and three of four
recordings are inside the 90 % interval.** Nothing was fitted to these profiles. Each is predicted with `hwsim import kineto
FILE... --machine MACHINE` on the same kind of GPU. This page is written by `python -m scripts.traces DATA`.

*Recorded* and *predicted* are the total kernel time by kind of work over all GPUs; for collectives, it is the transfer time
without waiting. *Ratio* is predicted / recorded. Ops that cannot be predicted (without shapes, or without a statement in
the workload language) keep their recorded time and are excluded from the ratio; *unpredicted* is their share. *Interval* is
hwsim's 90 % interval.
"""


class Profile(NamedTuple):
    """A published run: files, source, machine of the prediction, network, batch, and notes."""

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
            "The profile has no shapes, so those of the network are used.",
            (
                "Convolutions with Winograd transforms reach up to 2.1 times the peak FLOP/s. hwsim assumes them on "
                "every GPU without fp32 matrix units, with constants from published training and inference on other "
                "GPUs (`hwsim/devices/convolution_speeds.py`)."
            ),
            (
                "Gradients of convolutions with stride 2 take twice as long as their GEMMs, and those of 1 x 1 "
                "convolutions up to four times. cuDNN uses other kernels for them (`dgrad_engine`, "
                "`wgrad_alg0_engine`), which hwsim does not model."
            ),
            (
                "hwsim assumes memory bandwidth for the gradient of max pooling, but PyTorch's kernel visits the "
                "windows of every pixel and is far slower."
            ),
            ("This part states no rate for pageable copies; they are predicted as one copy by a core and one over the link."),
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
                "The profile has shapes of collectives only. The batch of 32 images is inferred from the times of "
                "elementwise kernels, so their ratio is not informative."
            ),
            ("The second rank was not recorded, so recorded collectives include waiting for it; the prediction does not."),
            (
                "The constants of TF32 convolutions were fitted to whole trainings, which convert the layout of every "
                "image. cuDNN converts fewer."
            ),
            (
                "Batch norms take 1.4 times as long as four reads and a write, because cuDNN's single-pass kernels do "
                "not reach memory bandwidth."
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
            ("The profile has a resolution of 1 us, and kernels take 2 or 3 us, including the profiler's own time."),
            ("FBGEMM kernels (embedding tables) have no statement in the workload language and keep their recorded times."),
            ("The intervals are wide, because no measurements exist for kernels of a few microseconds under a profiler."),
        ),
    ),
    Profile(
        "A recommendation model on A100, two ranks of 128",
        ("hta_sampled_128rank_r0.json.gz", "hta_sampled_128rank_r1.json.gz"),
        "sampled ranks of a production training; facebookresearch/HolisticTraceAnalysis, tests",
        "dgx-a100",
        "",
        0,
        (
            (
                "Collectives among 128 ranks keep their recorded times, because the machine has eight GPUs and most "
                "sizes are missing."
            ),
        ),
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
        lines += ["| work | recorded | predicted | ratio | interval | inside | unpredicted |", "|---|---|---|---|---|---|---|"]
        lines += [_row(work) for work in (*found.kinds, found.gpu) if work.recorded > 0.001 * found.gpu.recorded]
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
