"""What is minimized: losses that add and scale."""
