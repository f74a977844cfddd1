"""Per-device search engines."""
