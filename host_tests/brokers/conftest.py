"""Every test of this folder that asks for `family` runs against each broker and level.

RabbitMQ and ejabberd have to be fetched first, and all levels of all brokers take long,
so what is not among a family's usual levels carries the mark `broker`, which `make test`
leaves out and `pytest -m broker host_tests/brokers` does not.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from host_tests.brokers import BrokerProcess
from host_tests.brokers.clients import Node, Other, new_name
from host_tests.brokers.families import FAMILIES, Family


def of_families(
    rows_of: Callable[[Family], Iterable[tuple]] = lambda family: ((),),
    levels: tuple[int, ...] = (3, 4, 5),
) -> list:
    """Rows of parameters for `family` and what `rows_of` gives, for each family and level."""
    rows = []
    for name, family in FAMILIES.items():
        for level in filter(levels.__contains__, family.levels):
            group = f"{name}-{level}"
            marks = [pytest.mark.xdist_group(group)]  # one process: the broker is started once
            if level not in family.usual_levels:
                marks.append(pytest.mark.broker)
            for row in rows_of(family):
                row_id = "-".join([group, *map(str, row)])
                rows.append(pytest.param((name, level), *row, marks=marks, id=row_id))
    return rows


@pytest.fixture(scope="session", params=of_families())
def family(request: pytest.FixtureRequest) -> Family:
    """What to expect of the broker, at one of its levels."""
    name, level = request.param
    return replace(FAMILIES[name], level=level)


@pytest.fixture(scope="session")
def broker(family: Family) -> Iterator[BrokerProcess]:
    """The broker itself, running; topics and client ids have to be the test's own."""
    with family.make() as running:
        yield running


@pytest.fixture
def topic() -> str:
    """One that no other test uses."""
    return new_name("topic")


@pytest.fixture
def node(family: Family, broker: BrokerProcess) -> Iterator[Node]:
    """Our client, connected with its default settings."""
    with Node(broker.port, family) as node:
        yield node


@pytest.fixture
def other(family: Family, broker: BrokerProcess) -> Iterator[Other]:
    """paho-mqtt, connected."""
    with Other(broker.port, family) as other:
        yield other
