"""Stands in for the module `random` where nothing may be left to chance."""


class Dice:
    """Throws 0: packet ids begin at 1, and nobody pauses before the next attempt."""

    def getrandbits(self, bits: int) -> int:
        return 0


class Thrown:
    """`with Thrown(modules):` inside, the `random` of these modules is a `Dice`."""

    def __init__(self, modules):
        self._modules = list(modules)

    def __enter__(self) -> None:
        self._before = [module.random for module in self._modules]
        for module in self._modules:
            module.random = Dice()

    def __exit__(self, *_) -> None:
        for module, before in zip(self._modules, self._before):
            module.random = before
