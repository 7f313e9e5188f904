"""The answers of the commands, as functions of the same names: `import hwsim` offers them."""
