"""Applications of many searches at once, one file each."""
