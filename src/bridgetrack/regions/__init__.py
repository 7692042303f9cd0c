"""Candidate regions: what may be a cell, many of which overlap; their score and choice."""
