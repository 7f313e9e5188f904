"""Reader of Kineto traces: the JSON of the PyTorch profiler, one file per rank."""
