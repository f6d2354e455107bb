"""What the tests of all random programs do: run many seeds, and have wrong clients caught."""

from host_tests.sim.programs import broken_promise


def keep_all_promises(program, seeds):
    """Fail at the first seed of which `program(seed)` breaks a promise."""
    for seed in seeds:
        broken = broken_promise(program(seed))
        assert not broken, f"seed {seed}: {broken}"


def by_name(*wrong):
    """-> (change, owner, name of the owner's attribute, seed, rule) by the name of the change."""
    return {one[0].__name__: one for one in wrong}


def breaks_its_rule(wrong, program, monkeypatch):
    """Fail unless `program(seed)` breaks the rule first, once the change is made."""
    change, owner, name, seed, rule = wrong
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    broken = broken_promise(program(seed))
    assert broken and broken.rule == rule
