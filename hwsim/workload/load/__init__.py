"""Load of services: when requests come, and how much each of them asks for, as streams of numbers drawn by hash."""
