"""Watching, judging and supervising: everything that puts the other rooms to work."""
