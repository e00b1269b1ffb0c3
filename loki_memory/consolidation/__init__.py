"""The write path: episodes become beliefs. Phases, each a pure function over a snapshot."""
