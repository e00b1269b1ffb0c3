"""The read path: from a question to the few memories that matter, with reasons."""
