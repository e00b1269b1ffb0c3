"""What is put outside `.loki/memory` when asked: one module for each target."""
