//! A toolbox out to the world: one MCP endpoint for every client.
