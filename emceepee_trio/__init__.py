"""One MCP connection to every MCP server."""
