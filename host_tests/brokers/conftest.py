"""Every test of this folder that asks for `family` runs against each broker.

RabbitMQ starts slowly and has to be installed first, so its tests carry the mark
`broker`, which `make test` leaves out and `make test-brokers` does not.
"""

from collections.abc import Iterable, Iterator

import pytest

from host_tests.brokers.families import FAMILIES, Family
from tools.brokers import BrokerProcess

_FURTHER = {"rabbitmq"}


def _marks(name: str) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.xdist_group(name)]  # one process: the broker is started once
    return [*marks, pytest.mark.broker] if name in _FURTHER else marks


def of_families(rows: Iterable[tuple]) -> list:
    """Rows of parameters that begin with a broker's name, marked as the fixture's are."""
    return [pytest.param(*row, marks=_marks(row[0])) for row in rows]


@pytest.fixture(scope="session", params=of_families((name,) for name in FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    """What to expect of the broker."""
    return FAMILIES[request.param]


@pytest.fixture(scope="session")
def broker(family: Family) -> Iterator[BrokerProcess]:
    """The broker itself, running; topics and client ids have to be the test's own."""
    with family.make() as running:
        yield running
