"""Hooks: an agent's harness reports events of a running session, and we answer with memory."""
