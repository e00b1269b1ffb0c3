"""What changes memory: remembering, episodes of sessions, feedback, consolidation, removal."""
