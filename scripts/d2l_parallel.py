"""Rows of docs/d2l.md on automatic parallelism and training on several GPUs."""

from __future__ import annotations

from typing import Final

from scripts.d2l_row import Row

PARALLEL: Final[dict[str, tuple[str, tuple[Row, ...]]]] = {
    "Automatic parallelism": (
        "Ten matmuls of 2000 x 2000 on the CPU and ten on the GPU; then ten on the GPU with copies of their results.",
        (
            Row(
                "CPU alone",
                0.6551,
                "fitted",
                "d2l-gpu-workstation",
                "d2l/parallel-cpu-gpu",
                "the CPU's peak is fitted to this figure",
                {"gpu": 0},
            ),
            Row(
                "GPU alone",
                0.1667,
                "fitted",
                "d2l-gpu-workstation",
                "d2l/parallel-cpu-gpu",
                "the GPU's peak is fitted to the 0.1657 s of the copy experiment",
                {"cpu": 0},
            ),
            Row(
                "CPU and GPU",
                0.7408,
                "predicted",
                "d2l-gpu-workstation",
                "d2l/parallel-cpu-gpu",
                "the CPU also issues the GPU's work and waits for it; this uses none of its cores here",
            ),
            Row(
                "CPU and GPU, with copies of the GPU's results",
                0.6551,
                "closed form",
                "d2l-gpu-workstation",
                "d2l/parallel-cpu-gpu",
                "exercise 3, no queue named: the longest of 655 ms, 166 ms and 96 ms",
                {"copies": 1},
            ),
            Row(
                "ten independent matmuls on one worker",
                0.07083,
                "closed form",
                "d2l-laptop",
                "d2l/independent-products",
                "exercise 1, MXNet's default of one worker per CPU, one core per matmul: ten rounds of 7.08 ms",
                {"workers": 1},
            ),
            Row(
                "ten independent matmuls on four workers",
                0.02125,
                "closed form",
                "d2l-laptop",
                "d2l/independent-products",
                "as above: ceil(10 / 4) = 3 rounds; dispatch adds 0.1 ms",
            ),
            Row(
                "matmuls on the GPU",
                0.1657,
                "fitted",
                "d2l-gpu-workstation",
                "d2l/copy-overlap",
                "the GPU's peak is fitted to this figure",
                {"copy": 0},
            ),
            Row(
                "matmuls and copies overlapped",
                0.1936,
                "predicted",
                "d2l-gpu-workstation",
                "d2l/copy-overlap",
                "all matmuls and the last copy; copies through pageable memory also keep the host busy between them",
            ),
            Row(
                "matmuls, then copies",
                0.2618,
                "closed form",
                "d2l-gpu-workstation",
                "d2l/copy-overlap",
                "0.1657 + 0.0961 s, the book's sum",
                {"stream": "compute"},
            ),
            Row(
                "V100: 50 matmuls of 4000 x 4000 (PyTorch)",
                (0.46, 0.4706, 0.49),
                "predicted",
                "p3.16xlarge",
                "d2l/copy-overlap",
                "the V100's constants are fitted to half of a published set of other matmuls",
                {"gpu": "gpu0", "cpu": "cpu0", "n": 4000, "times": 50, "copy": 0},
            ),
            Row(
                "V100: matmuls and copies overlapped",
                (1.64, 1.7703),
                "predicted",
                "p3.16xlarge",
                "d2l/copy-overlap",
                (
                    "bound by the copies, 3.2 GB to pageable memory at 1.4 GB/s, which take 2.3 s in the book, too. Its runs "
                    "with `non_blocking=True` copied faster; why is unknown"
                ),
                {"gpu": "gpu0", "cpu": "cpu0", "n": 4000, "times": 50, "memory": "pageable"},
            ),
        ),
    ),
    "Training on several GPUs": (
        (
            "An epoch of Fashion-MNIST, 60,000 images, on one and two V100: a handwritten LeNet with 256 images per batch, and "
            "the framework's ResNet-18 with 256 images per GPU. The book's authors ran the notebooks with MXNet in July 2019, on "
            "a server with four V100; simulated are two of the eight in a p3.16xlarge. A small network is no faster on two GPUs, "
            "a larger one nearly twice as fast.\n\n"
            "The commands also print MFU: 15 % for LeNet and 96 % for ResNet-18 on one GPU. "
            "[MFU](terms.md#training-and-estimates) counts the FLOP of direct convolutions in both passes. The GPU executes "
            "about a third of them, because the library computes most of these convolutions with the Winograd transform. So the "
            "row `gpu0 compute` shows less FLOP per second."
        ),
        (
            Row(
                "LeNet, one GPU",
                1.8,
                "fitted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                (
                    "bound by the data loader: 7.02 ms per batch, as timed in section 3.5. Only this sum was measured; that the "
                    "training process spends it was chosen, because the second GPU costs time in the book"
                ),
            ),
            Row(
                "LeNet, two GPUs",
                2.5,
                "fitted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                "as above; one thread receives the batches and issues the ops of both GPUs, 3.7 ms per step: 1.65 + 0.87 s",
                {"gpus": 2},
            ),
            Row(
                "LeNet, one GPU, loaded by workers",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                "if all of the 7.02 ms overlapped with the training",
                {"hidden": 1},
            ),
            Row(
                "LeNet, two GPUs, loaded by workers",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                "the same time: 3.7 ms per step overlap with the loader, so the second GPU would cost nothing",
                {"hidden": 1, "gpus": 2},
            ),
            Row(
                "LeNet, one GPU, without its loader",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-lenet",
                "the share of the GPU and of the issuing thread",
                {"steps": 235},
            ),
            Row(
                "LeNet, two GPUs, without its loader",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-lenet",
                "slower with the second GPU, as in the book",
                {"steps": 235, "gpus": 2},
            ),
            Row(
                "ResNet-18, one GPU",
                (13.2, 13.4, 12.2),
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-resnet18",
                "convolutions at the speed of NVIDIA's containers; the second run is a build of 2022, the third one with PyTorch",
                {"steps": 235},
            ),
            Row(
                "ResNet-18, two GPUs",
                7.3,
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-resnet18",
                "1.5 times as fast as one, 1.8 times in the book",
                {"steps": 118, "gpus": 2},
            ),
        ),
    ),
}
