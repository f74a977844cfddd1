"""What is moved between the parts of a run at the end of a level."""
