"""What a reader asks of a workspace: recall, what is put before agents, topics, status."""
