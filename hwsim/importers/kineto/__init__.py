"""Kineto: the JSON that PyTorch's profiler writes (`export_chrome_trace`, TensorBoard's handler), a file for each rank."""
