"""Lines of the documentation that a desk is enough for, typed as they stand there.

Those that need a board: host_tests/boards/test_typed.py.
"""

import pytest

from host_tests.docs.typed import Project


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project", {})


def test_fleet_is_simulated(project):
    project.type("docs/guides/auditing.md", "python -m host_tests.fleet.simulate")
    made = {one.name for one in (project.folder / "build/fleet/captures").iterdir()}
    assert {"monday.pcap", "monday.pcap.truth.json"} <= made


def test_pipeline_is_packed_for_a_cluster(project):
    project.type("docs/guides/fleet-cluster.md", "python -m tools fleet package")
    assert (project.folder / "build/fleet.zip").stat().st_size > 10_000


def test_simulated_faults_are_replayed(project):
    assert project.type("docs/reasons/guarantees.md", "python -m host_tests sim replay")


def test_set_up_has_nothing_to_do(project):
    assert project.type("docs/start/index.md", "make setup") == ""
