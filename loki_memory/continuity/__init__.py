"""Working memory: what matters now in CONTINUITY.md, and what the agent noted there itself."""
