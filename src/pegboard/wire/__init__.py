"""JSON-RPC on the wire: lines, message streams and filters that `server` and `upstream` share."""
