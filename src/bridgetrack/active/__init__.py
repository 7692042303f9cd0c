"""Active learning: which event to ask about next, and when to stop (000, section 1.5).

`suggester` ranks single events, `session` holds the questions, answers and estimates of one
annotator without any window, and `algorithm` is Algorithm 1.2 of 000 as printed.
"""
