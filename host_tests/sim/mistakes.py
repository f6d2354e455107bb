"""Mistakes: a line of the library is another one, so that tests of tests see it noticed."""

import inspect
import sys
import textwrap
from typing import Any, NamedTuple

from host_tests.sim import device, tasks
from umqtt31 import MQTTClient


class Mistake(NamedTuple):
    """In the function `owner.name`, of a module or a class, `wrong` stands where `right` does."""

    owner: Any
    name: str
    right: str
    wrong: str

    def make(self, monkeypatch: Any) -> None:
        """Until the test is over the library has it; an error if `right` is not there once."""
        original = getattr(self.owner, self.name)
        function = self._function(original)
        if self.owner.__class__ is type:
            monkeypatch.setattr(self.owner, self.name, function)
        else:
            for module in list(sys.modules.values()):
                if getattr(module, self.name, None) is original:
                    monkeypatch.setattr(module, self.name, function)
        if self.name == "extend":  # it makes the module's class
            monkeypatch.setattr(self.owner, "MQTTClient", self.owner.extend(MQTTClient))
        for module in (device, tasks):
            monkeypatch.setattr(module, "watched", module.watched.__wrapped__)

    def _function(self, original: Any) -> Any:
        source = textwrap.dedent(inspect.getsource(original))
        found = source.count(self.right)
        assert found == 1, f"{found} times in {self.name}(): {self.right}"
        source = textwrap.indent(source.replace(self.right, self.wrong), "    ")
        # A method that says super() needs its class.
        made: dict[str, Any] = {}
        text = f"def make(__class__):\n{source}\n    return {self.name}\n"
        exec(compile(text, self.name, "exec"), original.__globals__, made)
        return made["make"](self.owner)
