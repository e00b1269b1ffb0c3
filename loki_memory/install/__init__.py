"""Installation outside `.loki/memory`, on request: one module for each target."""
