"""Everything between a drawer of boards and a running sensor: build, image, flash, deploy.

Boards are data (`boards/<NAME>/board.toml`, read by `profile`); each module here
does one step and `cli` only parses arguments and prints.
"""
