"""Where particles start: a box around the data, or normal laws like it."""
