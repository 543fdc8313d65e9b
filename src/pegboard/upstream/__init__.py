"""Connections to MCP servers: opened, shared, listed, and relayed to, in both protocol eras."""
