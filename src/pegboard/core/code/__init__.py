"""Programs that models write: names, type stubs, the checker's findings. Pure values."""
