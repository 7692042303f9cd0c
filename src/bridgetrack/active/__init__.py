"""Active learning: which event to ask about next, and when to stop (000, section 1.5).

`suggester` ranks single events, and `session` holds what one annotator was asked and answered, and
learns from it, without any window.
"""
