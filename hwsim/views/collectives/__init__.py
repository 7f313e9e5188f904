"""Collectives by message size, as nccl-tests print them."""
