"""What `advise` says of order and load, and what it refuses."""

import pytest

from tools.boards import advise as advice
from tools.boards.config import keys


def settings_of(**changes):
    return keys.complete({"client_id": "d", "server": "s"} | changes)


@pytest.mark.parametrize(
    ("settings", "client", "order", "rules"),
    [
        ({"streams": [0]}, {}, "gaps", {"SIB-RELIABILITY"}),
        ({"streams": [1]}, {}, "resent", {"MQTT-4.6-RM1", "SIB-RELIABILITY"}),
        ({"streams": [1], "max_inflight": 1}, {}, "strict", {"SIB-RELIABILITY"}),
        ({"streams": [1]}, {"ordered": True}, "strict", {"SIB-RELIABILITY"}),
        ({"streams": [2]}, {}, "once", set()),
        ({"streams": [2]}, {"overflow": "latest"}, "gaps", {"SIB-NOEXC"}),
        ({"streams": [2]}, {"has_max_age": True}, "gaps", {"SIB-NOEXC"}),
        ({"streams": [2]}, {"clean_session": True}, "gaps", {"SIB-NONDURABLE"}),
        ({"streams": [2]}, {"tasks": 2}, "none", {"SIB-SINGLE"}),
    ],
)
def test_advise_names_order_and_each_broken_rule(settings, client, order, rules):
    """SIB-ADVISE"""
    one = advice.advise(settings_of(**settings), advice.Client(**client))[0]
    assert one.order == order
    assert {rule for rule, _ in one.broken} == rules


@pytest.mark.parametrize("change", [{"overflow": "latest"}, {"has_max_age": True}])
def test_advise_refusals_when_ordered_are_the_client_own(change):
    """SIB-ADVISE"""
    client = advice.Client(ordered=True, **change)
    assert advice.refusals(settings_of(streams=[1]), client)
    assert advice.refusals(settings_of(streams=[0, 1]), advice.Client(ordered=True))
    assert not advice.refusals(settings_of(streams=[2, 2]), advice.Client(ordered=True))


def test_advise_command_prints_order_rules_and_load(run, tmp_path):
    """SIB-ADVISE"""
    path = tmp_path / "device.toml"
    path.write_text('client_id = "d"\nserver = "s"\nstreams = [1, 2]\nstore = "journal"\n')
    output = run("advise", "--board", "desk", "--config", path)
    for text in ("1,2,3,2,3,4", "1,2,3,4", "MQTT-4.6-RM1", "SIB-ROUTE", "lasts", "bridges"):
        assert text in output
    run("advise", "--board", "desk", "--config", path, "--ordered", status=1)
