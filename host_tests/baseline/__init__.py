"""Sizes and instruction counts beside those recorded: what has grown, before it is merged.

Nothing here is timed.  The recorded figures are `recorded.json`, which a person
accepts with one command and which a change of the library shows in its diff.
"""
