"""Injection: what is put before an agent unasked, and how a line of it reads."""
