"""Active learning: which event to ask about next, and when to stop (000, section 1.5).

`suggester` ranks single events, `update` learns from the answers, and `session` holds what one
annotator was asked and answered, without any window.
"""
