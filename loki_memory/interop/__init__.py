"""Interoperation: imports, published skills, and memory of other systems."""
