"""Integrity: the write log, verification, signatures and citations."""
