"""Write the schemas into a folder."""

import sys
from pathlib import Path

from loki_memory.schema import write

write(Path(sys.argv[1]))
