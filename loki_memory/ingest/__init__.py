"""Transcripts of agents' sessions -> staged turns -> episodes."""
