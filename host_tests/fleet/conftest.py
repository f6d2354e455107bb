"""One Spark for all tests of the pipeline that need it."""

import pytest


@pytest.fixture(scope="session")
def spark():
    """A local SparkContext with two cores; the tests that use it share one process."""
    from tools.fleet.spark import engine

    started = engine.start("local[2]", memory="1g")
    yield started
    started.stop()


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks
def pytest_collection_modifyitems(items):
    """pytest-xdist keeps a group together, so that Spark starts once."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
