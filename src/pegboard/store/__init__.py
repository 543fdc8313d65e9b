"""Stores: where breakers, sessions, stored results and limits are, in memory or in Redis."""
