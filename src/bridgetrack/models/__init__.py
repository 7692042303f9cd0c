"""Models: weights with their meaning and their history."""
