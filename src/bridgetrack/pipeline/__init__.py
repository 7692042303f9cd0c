"""The main job, step by step: the calls that the command line and the plugin share."""
