"""Putting Pegboard into an MCP client's configuration, and taking it out again as it was before."""
