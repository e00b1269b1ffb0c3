"""The client of a team server: what this user asks, keeps of the answers, and shares.

`servers.py` has the addresses and tokens, `client.py` speaks HTTP, `cached.py` keeps the memory of
other repositories on this machine and recalls from it, `sync.py` pulls and pushes. A server is
never needed: what waits to be shared is the local memory itself, and what was pulled is a cache.
"""
