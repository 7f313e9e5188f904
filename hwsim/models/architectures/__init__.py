"""Architectures of models: for each the dimensions that its file writes, and the layers that follow from them."""
