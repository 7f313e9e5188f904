"""The text's own trainings on V100, as its notebooks print them: LeNet, GoogLeNet, ResNet-18 on one GPU and on two.

Nothing is fitted to these rows; the frameworks are those of NVIDIA's containers, which are not what the notebooks ran in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim.formats import percent
from hwsim.models.architectures.cnn import Cnn
from hwsim.models.architectures.entries import Shape
from hwsim.models.library import load_network
from published.cnn_rows import exchange_of
from published.cnn_training import data_parallel_step, kernels_of
from published.parts import table
from published.score import Miss, Score, group_median, worst_of


@dataclass(frozen=True, slots=True)
class Notebook:
    """What a notebook trains: a network of the library, its images, and the examples of a batch on all GPUs."""

    network: str
    input: Shape
    batch: int
    norm: bool | None = None


# Notebooks of chapters 6, 7 and 13 that train a network which the library has.
NOTEBOOKS: Final[Mapping[str, Notebook]] = {
    "lenet.ipynb": Notebook("lenet", (1, 28, 28), 256),
    "batch-norm.ipynb": Notebook("lenet", (1, 28, 28), 256, norm=True),
    "googlenet.ipynb": Notebook("googlenet", (1, 96, 96), 128),
    "resnet.ipynb": Notebook("resnet-18", (1, 96, 96), 256),
    "image-augmentation.ipynb": Notebook("d2l-resnet-18", (3, 32, 32), 256),
    "fine-tuning.ipynb": Notebook("resnet-18", (3, 224, 224), 128),
}
FED: Final = ("image-augmentation.ipynb", "fine-tuning.ipynb")


def scores(data: Path) -> tuple[Score, ...]:
    """All of them; by what feeds them."""
    found = tuple(_miss(each, notebook) for each in table(data / "validation" / "10_d2l.csv")
                  if each["metric"] == "examples_per_s" and (notebook := _notebook(each)) is not None)  # fmt: skip
    held = [miss for miss in found if not miss.reason]
    fed = [miss for miss in found if miss.reason]
    return (
        _score(
            "trainings of the text on a V100",
            held,
            0.25,
            "Small kernels and the host bind: LeNet takes 3 ms a step, of 40 launches.",
            0.336,
        ),
        _score(
            "trainings of the text on two V100 fed from files", fed, 0.25, "No data loader is modelled: `pipeline:` does.", 0.48
        ),
    )


def _notebook(each: Mapping[str, str]) -> Notebook | None:
    return NOTEBOOKS.get(each["notebook"].rpartition("/")[2])


def _miss(each: Mapping[str, str], notebook: Notebook) -> Miss:
    network = load_network(notebook.network)
    if isinstance(network, Cnn):
        network = replace(network, input=notebook.input, norm=network.norm if notebook.norm is None else notebook.norm)
    gpus = int(each["count"])
    software = "tensorflow-ngc" if "TensorFlow" in each["software"] else "pytorch-ngc"
    kernels = kernels_of("v100-sxm2-16gb", software)
    exchange = exchange_of("p3.16xlarge", "v100-sxm2-16gb", gpus, "")
    step = data_parallel_step(network, notebook.batch // gpus, "fp32", *kernels, gpus, exchange)
    name = each["notebook"].rpartition("/")[2]
    said = f"{each['id']}: {name.removesuffix('.ipynb')}, {gpus} x {notebook.batch // gpus}, {each['software']}"
    reason = "images are read, decoded and augmented by the CPU" if name in FED else ""
    return Miss(said, step.tokens_per_second, float(each["value"]), name, reason)


def _score(name: str, found: list[Miss], bound: float, notes: str, reached: float) -> Score:
    median, tail = group_median(found)
    said = f"Mean of the groups' 90th percentiles {percent(tail, '.0f')}. {notes}".strip()
    return Score(name=name, metric="group median", value=median, bound=bound, reached=reached, rows=len(found),
                 half="not fitted", worst=worst_of(found), notes=said)  # fmt: skip
