"""Python functions with the names of the commands, exported by `import hwsim`."""
