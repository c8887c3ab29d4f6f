"""Images learned as a joint energy."""
