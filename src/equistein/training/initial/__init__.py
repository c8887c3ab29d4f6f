"""Where particles start: a box around the data, or normal distributions like it."""
