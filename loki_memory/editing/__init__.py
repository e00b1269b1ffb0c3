"""Edit memory: statements that are remembered or corrected, removal and restoring."""
