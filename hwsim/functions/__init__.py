"""What the commands answer, as functions of the same names: `import hwsim` offers them."""
