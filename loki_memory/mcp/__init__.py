"""The MCP server: memory as tools and resources for any agent that speaks the protocol.

Only `loki-mem mcp` imports it: nothing else pays for the SDK, which takes a second to load.
"""
