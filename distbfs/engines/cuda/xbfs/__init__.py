"""Engine xbfs."""
