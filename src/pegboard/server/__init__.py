"""The protocol: requests in, wire results out, over stdio and HTTP, in both eras."""
