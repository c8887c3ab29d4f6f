"""What looks at a fit after each epoch."""
