"""The latency numbers every programmer should know, as the models of a machine give them."""
