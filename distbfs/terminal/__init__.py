"""What the commands share, and their work."""
