"""A call's way: short layers around a source, each one concern."""
