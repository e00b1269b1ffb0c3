"""Hooks: what an agent's harness tells us of a session while it goes on, and what we tell it."""
