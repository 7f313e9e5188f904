"""Rows of docs/d2l.md by experiment."""

from __future__ import annotations

from typing import Final

from scripts.d2l_row import ISSUED, MEMORY, Row

RUNTIME = "workload.runtime.use"
ADDING = "workload.program.repeat.repeat.do.add.busy.time"

EXPERIMENTS: Final[dict[str, tuple[str, tuple[Row, ...]]]] = {
    "Compilers and interpreters": (
        (
            "A network of five small ops is called 1000 times, which is 17 ms of computation on the CPU. In eager mode, issuing "
            "the 5000 ops takes 77 ms in PyTorch and 504 ms in MXNet. Python calls a compiled network once; the framework then "
            "issues its ops, four times faster than Python in MXNet, but hardly faster in TorchScript."
        ),
        (
            Row(
                "MXNet, imperative",
                0.5037,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "time to issue an op = this figure / 5000",
            ),
            Row(
                "MXNet, hybridized",
                0.1873,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "a call of five ops = this figure / 1000; the call itself is assumed to take half of a layer's time",
                {RUNTIME: "mxnet-hybrid"},
            ),
            Row(
                "PyTorch, eager",
                0.0939,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "time to issue a layer = this figure / 5000 minus the CPU's compute time",
                {RUNTIME: "pytorch-eager"},
            ),
            Row(
                "PyTorch, TorchScript",
                0.0903,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "interpreter time per op = this figure / 5000 minus the call, 3 ms of compilation and the CPU's compute time",
                {RUNTIME: "torchscript"},
            ),
            Row(
                "PyTorch, TorchScript, 10,000 calls",
                None,
                "predicted",
                "d2l-laptop",
                "d2l/hybridize",
                "steady state: ten times as long without the compilation, and 7 % faster than the 939 ms of eager PyTorch",
                {RUNTIME: "torchscript", "n": 10000},
            ),
            Row(
                "PyTorch, eager, on another machine",
                0.8653,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "time to issue a layer = this figure / 5000 minus the compute time: 10.98 times that of the first machine",
                {RUNTIME: "pytorch-eager", "workload.runtime.layer": "169.74 us"},
            ),
            Row(
                "PyTorch, TorchScript, on that machine",
                0.8492,
                "predicted",
                "d2l-laptop",
                "d2l/hybridize",
                "call, interpreter and compilation 10.98 times as long as on the first machine, as a layer of eager PyTorch is",
                {
                    RUNTIME: "torchscript",
                    "workload.runtime.compile": "32.9 ms",
                    "workload.runtime.call": "16.5 us",
                    "workload.runtime.issue": "{value: 152 us, source: guess}",
                },
            ),
            Row(
                "TensorFlow, eager (the book's notebook for TensorFlow)",
                0.6138,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "time to issue a layer, as above",
                {RUNTIME: "tf-eager"},
            ),
            Row(
                "TensorFlow, tf.function (the same notebook)",
                0.2578,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "a call of five ops = this figure / 1000 minus 50 ms of tracing; ops are computed while the next are issued",
                {RUNTIME: "tf-function"},
            ),
            Row(
                "PyTorch, eager, on a V100",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/hybridize",
                "no measurement: the book says that Python becomes overwhelming on a GPU; here dispatch takes all of the time",
                {"device": "gpu0", RUNTIME: "pytorch-eager"},
            ),
            Row(
                "CUDA graph on a V100",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/hybridize",
                "no measurement: 3 times faster, now bound by kernel launch latency",
                {"device": "gpu0", RUNTIME: "cuda-graph"},
            ),
        ),
    ),
    "Asynchronous computation": (
        "A random matrix and its square, ten times on the CPU. An asynchronous frontend finishes long before the backend.",
        (
            Row(
                "numpy",
                0.4711,
                "fitted",
                "d2l-laptop",
                "d2l/async-matmul",
                "the rate of the random generator is fitted to this figure",
                {RUNTIME: "numpy"},
            ),
            Row(
                "MXNet, issued",
                0.0015,
                "fitted",
                "d2l-laptop",
                "d2l/async-matmul",
                "75 us per op = this figure / 20",
                reading=ISSUED,
            ),
            Row(
                "MXNet, finished",
                0.5186,
                "predicted",
                "d2l-laptop",
                "d2l/async-matmul",
                "simulated with numpy's generator; MXNet's is slightly slower",
            ),
            Row(
                "matmul, wait for all",
                0.0069,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                "the peak is fitted to 2000 x 2000 matmuls of another section at 244 GFLOP/s; this one ran at 290",
            ),
            Row(
                "matmul, wait for its result",
                0.0064,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                "as above: this one ran at 313 GFLOP/s",
                {"all": 0, "one": 1},
            ),
            Row(
                "matmul, converted to numpy",
                0.0075,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                "as above; copying 4 MB takes 0.2 ms at full memory bandwidth, without page faults",
                {"all": 0, "convert": 1},
            ),
            Row(
                "matmul, its sum converted to a scalar",
                0.0187,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                (
                    "MXNet took about 11 ms to sum a million numbers. Simulated are 4.6 ns per number: four additions of "
                    "4 cycles, one after the other, at 3.5 GHz"
                ),
                {"all": 0, "scalar": 1},
            ),
            Row(
                "x + 1 a thousand times, waiting every time",
                0.0455,
                "fitted",
                "d2l-laptop",
                "d2l/async-loop",
                "time to return from a wait = (this figure minus the next) / 1000",
                {RUNTIME: "mxnet", ADDING: "0 s", "blocking": True},
            ),
            Row(
                "x + 1 a thousand times, waiting once",
                0.0420,
                "fitted",
                "d2l-laptop",
                "d2l/async-loop",
                "time to issue an op = this figure / 1000",
                {RUNTIME: "mxnet", ADDING: "0 s"},
            ),
            Row(
                "1000 (t1 + t2 + t3) with 12, 30 and 8 us",
                0.05,
                "closed form",
                "d2l-laptop",
                "d2l/async-loop",
                "the book has the formula; the three times are hwsim's",
                {"blocking": True},
            ),
            Row(
                "t1 + 1000 t2 + t3 with the same times",
                0.03002,
                "closed form",
                "d2l-laptop",
                "d2l/async-loop",
                "as above",
            ),
            Row(
                "numpy, beside PyTorch on a GPU",
                (0.6700, 1.3420),
                "predicted",
                "d2l-gpu-workstation",
                "d2l/async-matmul",
                "measured on another CPU; simulated on the CPU of the first rows, with its fitted generator",
                {RUNTIME: "numpy"},
            ),
            Row(
                "PyTorch on a GPU, issued",
                (0.0172, 0.4412),
                "predicted",
                "d2l-gpu-workstation",
                "d2l/async-matmul-gpu",
                "4.5 us per op; the book's first calls also create a generator and load kernels",
                reading=ISSUED,
            ),
            Row(
                "PyTorch on a GPU, finished",
                0.1188,
                "predicted",
                "d2l-gpu-workstation",
                "d2l/async-matmul-gpu",
                "the GPU is not named and would reach 170 GFLOP/s; simulated is that of the next section, 966 GFLOP/s",
            ),
            Row(
                "V100: PyTorch, issued",
                (0.0011, 0.0013),
                "predicted",
                "p3.16xlarge",
                "d2l/async-matmul-gpu",
                "4.5 us per op, measured on a faster CPU and without the arguments of randn",
                {"gpu": "gpu0"},
                ISSUED,
            ),
            Row(
                "V100: PyTorch, finished",
                (0.0023, 0.0049),
                "predicted",
                "p3.16xlarge",
                "d2l/async-matmul-gpu",
                "random numbers at 100 FLOP each, a guess for all GPUs; matmuls take 95 % of the time",
                {"gpu": "gpu0"},
            ),
            Row(
                "V100: numpy beside it",
                (1.0163, 1.0704),
                "predicted",
                "p3.16xlarge",
                "d2l/async-matmul",
                "random numbers at the rate of the book's laptop, a guess for all CPUs; this server reached a third of it",
                {RUNTIME: "numpy"},
            ),
        ),
    ),
    "Memory of a queue": (
        (
            "150 batches of 1024 x 512 pass through a small network, with and without a barrier after each. Without it, Python "
            "issues everything at once. Queued ops occupy memory only if their buffers are allocated when they are issued."
        ),
        (
            Row(
                "a barrier after each batch",
                9.9052,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                "every matmul is assumed to reach the peak of large ones; random numbers are generated on one core, as in numpy",
            ),
            Row(
                "no barrier, finished",
                11.0265,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                "as above; the book's run took 11 % longer without the barrier, for unknown reasons",
                {"barrier": 0},
            ),
            Row(
                "no barrier, issued",
                0.3534,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                "42 us per op, as for an addition; Gluon's layers take longer",
                {"barrier": 0},
                ISSUED,
            ),
            Row(
                "a barrier after each batch, additional memory",
                21.576e6,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                (
                    "the book prints the growth of a process that had run a forward pass: MXNet allocates a buffer when its op "
                    "runs, so this is the peak of an epoch minus the peak of a forward pass"
                ),
                reading=MEMORY,
                unit="B",
                less={"train": 0, "batches": 1, "barrier": 0},
            ),
            Row(
                "no barrier, additional memory",
                3.248e6,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                (
                    "the book's process had run the epoch with the barrier before, and the peak is no higher; 3.25 MB are 1.2 kB "
                    "for each of the 2,700 queued ops, which are not modelled"
                ),
                {"barrier": 0},
                MEMORY,
                "B",
                {"barrier": 1},
            ),
            Row(
                "no barrier, buffers allocated when ops are issued",
                None,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                "the spike of which the book warns: five large arrays for each of 149 queued batches",
                {"barrier": 0, "allocate": "issue"},
                MEMORY,
                "B",
            ),
        ),
    ),
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
                "predicted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                "bound by the data loader, as timed in section 3.5; without it the epoch takes 0.34 s",
            ),
            Row(
                "LeNet, two GPUs",
                2.5,
                "predicted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                (
                    "one thread issues the ops of both GPUs, 3.7 ms per step, and receives the batches: 1.65 + 0.87 s in "
                    "sequence, overlapped here"
                ),
                {"train": "3.72 ms"},
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
