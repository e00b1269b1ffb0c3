"""Seed: fill an empty memory from what a project's files and history say about the work on it."""
