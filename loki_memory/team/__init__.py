"""The team: ledgers, handoffs and briefs."""
