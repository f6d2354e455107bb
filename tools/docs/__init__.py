"""The documentation site: built from docs/, the docstrings of typings/ and the commands."""
