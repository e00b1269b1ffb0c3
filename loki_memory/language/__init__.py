"""The optional language model: it words what was found, and decides nothing.

Off unless the user's own config or environment chooses a backend. An answer is a projection: it is
kept on this machine beside memory, never in a record, so that ids, evidence, confidence, status
and what is published are the same with and without it, and turning it off restores every text.
"""
