"""For mkdocstrings: a function of a stub that has overloads only is a member, too."""

from typing import Any

import griffe


class Overloads(griffe.Extension):
    """Makes the last overload, which has the docstring, the function itself."""

    def on_class_members(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Called when the members of `cls` were read."""
        for name, overloads in list(cls.overloads.items()):
            if overloads and name not in cls.members:
                function = overloads[-1]
                function.overloads = list(overloads)
                cls.set_member(name, function)
