"""Where programs run: the adapter of the `Sandbox` port."""
