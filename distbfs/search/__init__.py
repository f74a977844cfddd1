"""Direction policy, the host level loop, search sessions."""
