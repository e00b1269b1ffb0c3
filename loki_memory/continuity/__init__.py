"""Working memory: our block in CONTINUITY.md, and the notes of the agent around it."""
