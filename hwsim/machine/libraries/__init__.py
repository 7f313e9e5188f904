"""Cost models of communication libraries, such as NCCL and MPI: the time that they add to the links.

These modules do not depend on a machine; `hwsim.communication` combines them with one. The table of kinds is in `kinds`.
"""
