"""The watcher of a workspace: what it does in the background, and how commands ask it."""
