"""Statistics and results of services; their memory does not grow with the number of requests."""

from __future__ import annotations
