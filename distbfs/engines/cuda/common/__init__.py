"""What engines on CUDA devices share."""
