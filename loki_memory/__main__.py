"""`python -m loki_memory` is `loki-mem`."""

from loki_memory.cli import program

program()
