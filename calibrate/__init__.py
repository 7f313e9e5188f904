"""What is measured, and how the models' numbers are fitted to it."""
