"""Injection: memories that an agent gets unasked, and the wording of a line."""
