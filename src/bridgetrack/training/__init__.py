"""Learning to track: the generic learners applied to annotated movies."""
