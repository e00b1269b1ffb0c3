"""The watcher of a workspace: its work in the background, and the commands that it answers."""
