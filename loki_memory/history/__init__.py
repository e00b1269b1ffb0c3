"""Memory in git: commits, trees of the past, and branches; gitpython is imported only here."""
