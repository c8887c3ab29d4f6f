"""What drives all experiments: entries, stages over seeds, figures, and runs."""
