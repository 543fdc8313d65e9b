"""Observers of events: logs, traces, metrics, statistics, the audit log."""
