"""Candidate regions, many of which overlap: how they are proposed, scored and chosen."""
