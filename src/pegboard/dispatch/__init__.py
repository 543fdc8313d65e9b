"""A call's way: short layers around the one that runs it."""
