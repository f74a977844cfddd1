"""Other libraries that search breadth-first, for comparisons; one file each."""
