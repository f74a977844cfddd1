"""Engine pan."""
