"""What happened, told to people and machines: logs, traces, statistics. Each is an `Observer`."""
