"""Whole programs written with Pegboard: a team's tracker, and an episode memory."""
