"""The page of sources: which rows of every table are scored, which are not and why, and which come with hwsim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from published import parts
from published.shipping import licence, name_of, source_of

# Table, source: why rows without a flag are in no score.
WHY: Final[Mapping[tuple[str, str], str]] = {
    ("03_collectives", "stackhpc/hpc-tests"): "messages of 0 bytes",
    (
        "04_hostdev",
        "microsoft/superbenchmark",
    ): "sizes that the parts were fitted to; copies inside a GPU below 15 MB, the timer's noise",
    ("04_hostdev", "NVIDIA/gdrcopy"): "sizes that the parts were fitted to",
    (
        "05_storage",
        "mlcommons/storage_results_v1.0",
    ): "they repeat a rule: the accelerators' own rate times the least utilisation allowed; nothing of a disk",
    (
        "05_storage",
        "apratajr/AdvancedComputerSystems",
    ): "blocks that the part was fitted to; rate, accesses and latency of one run are one figure",
    ("05_storage", "treeru.com/en/blog/nvme-storage-benchmark-20-devices"): "drives that the library does not have",
    ("05_storage", "shaojwa/tools"): "a drive without a name",
    ("05_storage", "bigscience-workshop/bigscience"): "checkpoints on a file system of unknown make",
    ("06_cpulat", "d2l-ai/d2l-en"): "compared with the whole table of the text instead",
    ("07_llm_train", "AI-Hypercomputer/maxtext"): "TPUs, which the library does not have; rows without all dimensions",
    ("07_llm_train", "NVIDIA/Megatron-LM"): "a row without all dimensions",
    ("08_cnn_train", "NVIDIA/DeepLearningExamples:PyTorch/Classification/ConvNets"): "EfficientNet: which one is not said",
    ("08_cnn_train", "NVIDIA/DeepLearningExamples"): "networks that the library does not have; sums over several workers",
    ("08_cnn_train", "stanford-futuredata/gavel"): "sums over several workers",
    ("09_infer", "casys-kaist/LLMServingSim"): "experts, and rows without dimensions",
    ("09_infer", "NVIDIA/FasterTransformer"): "real lengths are not said; decoders whose layers are not said; the large encoder, "
    "which would be above the GPU's peak",
    ("09_infer", "NVIDIA/DeepLearningExamples:PyTorch/Classification/ConvNets"): "EfficientNet: which one is not said",
    ("09_infer", "NVIDIA/DeepLearningExamples"): "BERT whose real lengths are not said; EfficientNet, which one is not said",
    ("09_infer", "PrincetonUniversity/LLMCompass"): "the same runs as its tables of single kernels, which are scored",
    (
        "10_d2l",
        "d2l-ai/d2l-pytorch-sagemaker-studio-lab",
    ): "numpy and first calls, copies to new pages: see the page of the chapter",
    ("10_d2l", "d2l-ai/d2l-zh-pytorch-sagemaker"): "numpy and first calls, copies to new pages: see the page of the chapter",
    ("10_d2l", "d2l-ai/d2l-pytorch-slides"): "the cell that the start of a second GPU is taken from",
}
SERVING: Final = "beyond the sample that is scored"
HEAD: Final = """# Where the measurements are from

Written by `python -m published --data DIR --write`. A row is one measurement. It is *scored* when a topic of these pages reads
its figure: as a row of the fit, of the rows held out, or of both in turn. A flag is what is known against a row (another column's
device, a noise of 40 %, depth unclear): flagged rows are in no score.

Figures whose licence allows it come with the sources of hwsim, in packed tables of 0.7 MB altogether
(`calibrate/published/data/`); `sources.yaml` beside them lists every source, its commit, its licence and its files.
`python -m published` scores those rows without any other file; `--data DIR` scores all of them, for a folder that has the tables.

| table | source | rows | flagged | scored | not scored, and why | licence | here |
|---|---|---|---|---|---|---|---|
"""


def page(data: Path, read: set[tuple[str, int]]) -> str:
    """The page in Markdown.

    Args:
        read: (table, row) of every figure that a topic read, see `published.parts`.
    """
    lines, total = [], [0, 0, 0]
    for path in sorted([*data.glob("validation/*.csv"), *data.glob("validation/serving/aic_*.csv")]):
        for source, (rows, flagged, scored, unscored) in _counted(data, path, read).items():
            total = [total[0] + rows, total[1] + flagged, total[2] + scored]
            why = f"{unscored:,}: {_why(path.stem, source)}" if unscored else ""
            says = licence(source)
            lines.append(
                f"| {path.stem} | {source} | {rows:,} | {flagged or ''} | {scored:,} | {why} | {says} | {'yes' if says else ''} |"
            )
    lines.append(f"| all | | {total[0]:,} | {total[1]:,} | {total[2]:,} | | | |")
    return HEAD + "\n".join(lines) + "\n"


def _counted(data: Path, path: Path, read: set[tuple[str, int]]) -> Mapping[str, tuple[int, int, int, int]]:
    """By source: rows, flagged ones, scored ones, those without a flag that are not scored."""
    found: dict[str, list[int]] = {}
    for name, flagged, scored in _rows(data, path, read):
        own = found.setdefault(name, [0, 0, 0, 0])
        own[0] += 1
        own[1] += flagged
        own[2] += scored
        own[3] += not flagged and not scored
    return {name: (own[0], own[1], own[2], own[3]) for name, own in sorted(found.items(), key=lambda item: item[0].lower())}


def _rows(data: Path, path: Path, read: set[tuple[str, int]]) -> Iterator[tuple[str, bool, bool]]:
    for at, row in enumerate(parts.table(path)):
        name = name_of(source_of(str(path.relative_to(data)), row))
        yield name, bool(row.get("flag")), (path.name, at) in read


def _why(table: str, source: str) -> str:
    return WHY.get((table, source), SERVING if table.startswith("aic_") else "in no topic")
