"""Edge tuples by (slice, seed)."""
