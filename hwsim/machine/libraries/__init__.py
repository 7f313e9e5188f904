"""Communication libraries as a machine has them: what NCCL, MPI or any other adds to the links.

Nothing here knows a machine: `hwsim.communication` brings the two together. The kinds are in `kinds`.
"""
