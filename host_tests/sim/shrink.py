"""Makes a failing schedule as small as it gets while it breaks the same promise.

Greedy: fewer faults, fewer messages, default settings, earlier places; whatever still
fails is kept, until nothing more can be taken away.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from .campaign import Failure, attempt
from .faults import Fault
from .script import Script

_MOST_RUNS = 5000


def shrink(failure: Failure) -> Failure:
    """The smallest failure found that breaks the same rule; deterministic."""
    runs = 0
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for script, faults in _smaller(failure.script, failure.faults):
            runs += 1
            if runs > _MOST_RUNS:
                return failure
            found, _ = attempt(script, faults)
            if found and found.rule == failure.rule:
                failure = found
                is_smaller = True
                break
    return failure


def _smaller(
    script: Script, faults: tuple[Fault, ...]
) -> Iterator[tuple[Script, tuple[Fault, ...]]]:
    for k in range(len(faults)):
        yield script, faults[:k] + faults[k + 1 :]
    for smaller in _smaller_scripts(script):
        yield smaller, faults
        if len(faults) == 1:  # its place moves when there is less before it
            for at in range(faults[0].at):
                yield smaller, (faults[0]._replace(at=at),)
    for k, fault in enumerate(faults):
        for at in (0, fault.at // 2, fault.at - 1):
            if 0 <= at < fault.at:
                yield script, (*faults[:k], fault._replace(at=at), *faults[k + 1 :])


def _smaller_scripts(script: Script) -> Iterator[Script]:
    for name in ("up", "down"):
        text = getattr(script, name)
        if len(text) > 2:
            yield replace(script, **{name: text[: len(text) // 2]})
        for k in range(len(text)):
            yield replace(script, **{name: text[:k] + text[k + 1 :]})
    for item in fields(Script):
        if item.name in ("up", "down", "window"):
            continue  # these get smaller instead
        if getattr(script, item.name) != item.default:
            default: Any = item.default
            yield replace(script, **{item.name: default})
    if script.window > 1:
        yield replace(script, window=script.window - 1)
