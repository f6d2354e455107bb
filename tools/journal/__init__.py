"""Read a journal's flash image: show it, check it.

Decodes by docs/reference/journal-format.md and shares no code with the device library, so each
of the two shows a mistake of the other.
"""
