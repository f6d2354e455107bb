"""Stands in for the module `random` where nothing may be left to chance."""


class Dice:
    """Throws 0 or `number`: with 0 packet ids begin at 1, and nobody pauses before the next
    attempt."""

    def __init__(self, number: int = 0):
        self._number = number

    def getrandbits(self, bits: int) -> int:
        return self._number


class Thrown:
    """`with Thrown(modules):` inside, the `random` of these modules is a `Dice`."""

    def __init__(self, modules, number=0):
        self._modules = list(modules)
        self._number = number

    def __enter__(self) -> None:
        self._before = [module.random for module in self._modules]
        for module in self._modules:
            module.random = Dice(self._number)

    def __exit__(self, *_) -> None:
        for module, before in zip(self._modules, self._before):
            module.random = before
