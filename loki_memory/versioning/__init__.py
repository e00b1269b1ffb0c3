"""Memory under version control: commits, review, history, merges, verification."""
