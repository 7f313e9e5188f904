"""Rows of docs/d2l.md by experiment."""

from __future__ import annotations

from typing import Final

from scripts.d2l_row import Row, issued, memory

RUNTIME = "workload.runtime.use"
ADDING = "workload.program.repeat.repeat.do.add.busy.time"

EXPERIMENTS: Final[dict[str, tuple[str, tuple[Row, ...]]]] = {
    "Compilers and interpreters": (
        (
            "A network of five small ops, called 1000 times. Issued one by one, each op costs Python far more than the CPU "
            "needs to compute it; compiled, the network is issued as one."
        ),
        (
            Row(
                "MXNet, imperative",
                0.5037,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "the time to issue an op is this figure / 5000",
            ),
            Row(
                "MXNet, hybridized",
                0.1873,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "a call of five ops takes this figure / 1000; half of a layer's time is taken for the call itself",
                {RUNTIME: "mxnet-hybrid"},
            ),
            Row(
                "PyTorch, eager",
                0.0939,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "the time to issue a layer is this figure / 5000, less what the CPU computes; another machine prints 0.8653 s",
                {RUNTIME: "pytorch-eager"},
            ),
            Row(
                "PyTorch, TorchScript",
                0.0903,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                (
                    "the interpreter's time for an op is this figure / 5000, less the call, 3 ms of compilation and what the CPU "
                    "computes; another machine prints 0.8492 s"
                ),
                {RUNTIME: "torchscript"},
            ),
            Row(
                "PyTorch, TorchScript, 10,000 calls",
                None,
                "predicted",
                "d2l-laptop",
                "d2l/hybridize",
                "the steady state: ten times as long less the compilation, and 7 % less than the 939 ms of PyTorch, eager",
                {RUNTIME: "torchscript", "n": 10000},
            ),
            Row(
                "TensorFlow, eager (the text's notebook for TensorFlow)",
                0.6138,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "the time to issue a layer, as above",
                {RUNTIME: "tf-eager"},
            ),
            Row(
                "TensorFlow, tf.function (the same notebook)",
                0.2578,
                "fitted",
                "d2l-laptop",
                "d2l/hybridize",
                "a call of five ops takes this figure / 1000, less 50 ms of tracing and what the CPU computes; as above",
                {RUNTIME: "tf-function"},
            ),
            Row(
                "PyTorch, eager, on a V100",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/hybridize",
                "no measurement: the text says that Python becomes overwhelming on a GPU, and its dispatch is all of this time",
                {"device": "gpu0", RUNTIME: "pytorch-eager"},
            ),
            Row(
                "CUDA graph on a V100",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/hybridize",
                "no measurement: 3 times faster, now bound by the starts of the kernels on the GPU",
                {"device": "gpu0", RUNTIME: "cuda-graph"},
            ),
        ),
    ),
    "Asynchronous computation": (
        "Ten times a random matrix and its square, on the CPU. An asynchronous frontend is done long before the backend.",
        (
            Row(
                "numpy",
                0.4711,
                "fitted",
                "d2l-laptop",
                "d2l/async-matmul",
                "the generator's rate is fitted to this figure",
                {RUNTIME: "numpy"},
            ),
            Row(
                "MXNet, issued",
                0.0015,
                "fitted",
                "d2l-laptop",
                "d2l/async-matmul",
                "75 us an op: this figure / 20",
                figure=issued,
            ),
            Row(
                "MXNet, finished",
                0.5186,
                "predicted",
                "d2l-laptop",
                "d2l/async-matmul",
                "simulated with numpy's generator; MXNet's own is a little slower",
            ),
            Row(
                "a product, wait for all",
                0.0069,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                "the peak is fitted to 2000 x 2000 products of another section, which run at 244 GFLOP/s; this one ran at 290",
            ),
            Row(
                "a product, wait for it",
                0.0064,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                "as above: this one ran at 313 GFLOP/s",
                {"all": 0, "one": 1},
            ),
            Row(
                "a product, to numpy",
                0.0075,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                "as above; the copy of 4 MB takes 0.2 ms at the memory's full rate, and no page is new",
                {"all": 0, "convert": 1},
            ),
            Row(
                "a product, its sum to a scalar",
                0.0187,
                "predicted",
                "d2l-laptop",
                "d2l/barriers",
                (
                    "a sum of a million numbers took MXNet about 11 ms; four additions that wait for each other, 4 cycles "
                    "each, are 4.6 ns a number, and what walking the array takes besides is not known"
                ),
                {"all": 0, "scalar": 1},
            ),
            Row(
                "x + 1 a thousand times, waiting every time",
                0.0455,
                "fitted",
                "d2l-laptop",
                "d2l/async-loop",
                "the return of a wait is this figure less the next, / 1000",
                {RUNTIME: "mxnet", ADDING: "0 s", "blocking": True},
            ),
            Row(
                "x + 1 a thousand times, waiting once",
                0.0420,
                "fitted",
                "d2l-laptop",
                "d2l/async-loop",
                "the time to issue an op is this figure / 1000",
                {RUNTIME: "mxnet", ADDING: "0 s"},
            ),
            Row(
                "1000 (t1 + t2 + t3) with 12, 30 and 8 us",
                None,
                "closed form",
                "d2l-laptop",
                "d2l/async-loop",
                "50.0 ms by the text's formula; the text names no times",
                {"blocking": True},
            ),
            Row(
                "t1 + 1000 t2 + t3 with the same",
                None,
                "closed form",
                "d2l-laptop",
                "d2l/async-loop",
                "30.02 ms by the text's formula",
            ),
            Row(
                "numpy, beside PyTorch on a GPU (another run: 1.3420)",
                0.6700,
                "predicted",
                "d2l-gpu-workstation",
                "d2l/async-matmul",
                "another CPU; here that of the first rows, whose generator is fitted to them",
                {RUNTIME: "numpy"},
            ),
            Row(
                "PyTorch on a GPU, issued (another run: 0.4412)",
                0.0172,
                "predicted",
                "d2l-gpu-workstation",
                "d2l/async-matmul-gpu",
                "4.5 us an op; the text's first calls make a generator and load kernels",
                figure=issued,
            ),
            Row(
                "PyTorch on a GPU, finished",
                0.1188,
                "predicted",
                "d2l-gpu-workstation",
                "d2l/async-matmul-gpu",
                "the GPU is not named: this one would reach 170 GFLOP/s. Here it is that of the next section, 966 GFLOP/s",
            ),
            Row(
                "V100: PyTorch, issued (two runs: 0.0011, 0.0013)",
                0.0011,
                "predicted",
                "p3.16xlarge",
                "d2l/async-matmul-gpu",
                "4.5 us an op, measured on a faster CPU and without the arguments of randn",
                {"gpu": "gpu0"},
                issued,
            ),
            Row(
                "V100: PyTorch, finished (two runs: 0.0023, 0.0049)",
                0.0023,
                "predicted",
                "p3.16xlarge",
                "d2l/async-matmul-gpu",
                "random numbers at a guess for all GPUs, 100 FLOP each; products are 95 % of the time",
                {"gpu": "gpu0"},
            ),
            Row(
                "V100: numpy beside it (two runs: 1.0163, 1.0704)",
                1.0163,
                "predicted",
                "p3.16xlarge",
                "d2l/async-matmul",
                "random numbers as on the text's laptop, a guess for all CPUs; this server drew a third as many",
                {RUNTIME: "numpy"},
            ),
        ),
    ),
    "Memory of a queue": (
        (
            "150 batches of 1024 x 512 through a small network, with and without a barrier after each. Without it Python issues "
            "everything at once, and what is queued holds its buffers."
        ),
        (
            Row(
                "a barrier after each batch",
                9.9052,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                "every product is taken to reach the peak of large ones; the random numbers are drawn on one core, as numpy does",
            ),
            Row(
                "no barrier, finished",
                11.0265,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                "as above; the text's run took 11 % longer without the barrier than with it and does not say why",
                {"barrier": 0},
            ),
            Row(
                "no barrier, issued",
                0.3534,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                "an op is issued in 42 us, as an addition is; Gluon's layers take longer",
                {"barrier": 0},
                issued,
            ),
            Row(
                "a barrier after each batch, more memory",
                21.576e6,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                (
                    "all values of a batch are counted, and those of the next while names change; the text measures by how "
                    "much a process grew that had run a batch before and kept its memory"
                ),
                figure=memory,
                unit="B",
            ),
            Row(
                "no barrier, more memory",
                3.248e6,
                "predicted",
                "d2l-laptop",
                "d2l/queue-memory",
                (
                    "here a buffer is taken when its op is issued, as a program must be ready for; MXNet takes it when the "
                    "op runs, and hands on what an op before gave back. So measured, less than with the barrier"
                ),
                {"barrier": 0},
                memory,
                "B",
            ),
        ),
    ),
    "Automatic parallelism": (
        "Ten products of 2000 x 2000 on the CPU and ten on the GPU; ten products on the GPU and the copies of their results.",
        (
            Row(
                "CPU alone",
                0.6551,
                "fitted",
                "d2l-gpu-workstation",
                "d2l/parallel-cpu-gpu",
                "the CPU's peak is this figure",
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
                "the CPU also issues the GPU's work and waits for it; that takes none of its cores here",
            ),
            Row(
                "products on the GPU",
                0.1657,
                "fitted",
                "d2l-gpu-workstation",
                "d2l/copy-overlap",
                "the GPU's peak is this figure",
                {"copy": 0},
            ),
            Row(
                "products and copies overlapped",
                0.1936,
                "predicted",
                "d2l-gpu-workstation",
                "d2l/copy-overlap",
                "all products and the last copy; copies through pageable memory also keep the host busy between them",
            ),
            Row(
                "products, then copies",
                0.2618,
                "closed form",
                "d2l-gpu-workstation",
                "d2l/copy-overlap",
                "0.1657 + 0.0961 s, the text's sum of the parts",
                {"stream": "compute"},
            ),
            Row(
                "V100: 50 products of 4000 x 4000 (PyTorch, three runs: 0.46, 0.47, 0.49)",
                0.4706,
                "predicted",
                "p3.16xlarge",
                "d2l/copy-overlap",
                "the V100's constants are fitted to half of a published set of other products",
                {"gpu": "gpu0", "cpu": "cpu0", "n": 4000, "times": 50, "copy": 0},
            ),
            Row(
                "V100: products and copies overlapped (two runs: 1.64, 1.77)",
                1.7703,
                "predicted",
                "p3.16xlarge",
                "d2l/copy-overlap",
                (
                    "the notebooks copy 3.2 GB through pageable memory, at 1.4 GB/s; with non_blocking=True they measured "
                    "products and copies together as faster than the copies alone"
                ),
                {"gpu": "gpu0", "cpu": "cpu0", "n": 4000, "times": 50, "memory": "pageable"},
            ),
        ),
    ),
    "Training on several GPUs": (
        (
            "An epoch of Fashion-MNIST, 60,000 images, on one and two V100 of a server with four: LeNet written by hand, 256 "
            "images a batch, and ResNet-18 of the framework, 256 images a GPU. The figures come from notebooks that the "
            "text's authors ran with MXNet in July 2019. A small network is no faster on two GPUs, a larger one nearly twice "
            "as fast."
        ),
        (
            Row(
                "LeNet, one GPU",
                1.8,
                "predicted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                "the loader sets the pace, by what section 3.5 prints for it alone; without it the epoch takes 0.34 s",
            ),
            Row(
                "LeNet, two GPUs",
                2.5,
                "predicted",
                "p3.16xlarge",
                "d2l/fashion-mnist-epoch",
                (
                    "one thread issues the ops of both, 3.7 ms a step, and takes the batches from the workers: in turn they "
                    "are 1.65 + 0.87 s, here they overlap"
                ),
                {"train": "3.72 ms"},
            ),
            Row(
                "LeNet, one GPU, without its loader",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-lenet",
                "what the GPU and the thread that issues its ops take of an epoch",
                {"steps": 235},
            ),
            Row(
                "LeNet, two GPUs, without its loader",
                None,
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-lenet",
                "here as there the second GPU makes it slower",
                {"steps": 235, "gpus": 2},
            ),
            Row(
                "ResNet-18, one GPU",
                13.2,
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-resnet18",
                "convolutions at what NVIDIA's containers reach; a build of 2022 prints 13.4 s, one with PyTorch 12.2",
                {"steps": 235},
            ),
            Row(
                "ResNet-18, two GPUs",
                7.3,
                "predicted",
                "p3.16xlarge",
                "d2l/multi-gpu-resnet18",
                "1.5 times as fast as one, where the text finds 1.8 times",
                {"steps": 118, "gpus": 2},
            ),
        ),
    ),
}
