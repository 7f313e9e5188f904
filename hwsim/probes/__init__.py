"""What single ops take on a machine, as the tables and the figure that everybody knows: latency numbers, rooflines."""
