"""Edit memory: statements that are remembered, and what is removed or restored."""
