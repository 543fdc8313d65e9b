"""Many servers behind one board: configuration in, a running gateway out."""
