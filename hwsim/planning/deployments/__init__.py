"""Deployments of a served model: parallel plans, splits, batches and replicas, and their frontier of throughput and latency."""
