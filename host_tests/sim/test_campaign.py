"""The default run of the simulator: every single fault, every pair of places, random ones.

Shows, under every schedule of faults: 31-4.1-Q1, 31-4.1-Q2, 31-4.2-RECONNECT,
31-4.3-STAGE, 31-4.3-WINDOW, 31-2.1-DUP, 31-2.4-ID, 31-2.2-KA, 31-RT-INFLIGHT,
MQTT-4.3.2-1 to MQTT-4.3.2-4, MQTT-4.3.3-1 to MQTT-4.3.3-6, MQTT-4.3.3-10 to
MQTT-4.3.3-12, MQTT-4.6.0-1 to MQTT-4.6.0-4, MQTT-4.6-RM1, RT-INFLIGHT, RT-MQUEUE.
"""

import pytest

from host_tests.sim import campaign


@pytest.mark.xdist_group("simulator")
def test_default_run_of_all_schedules_breaks_no_promise(record_property):
    total = campaign.Result()
    for result in campaign.run_jobs(campaign.default_jobs()):
        total.add(result)
    record_property("figure", f"{len(total.schedules):,} distinct fault schedules simulated")
    if total.failures:
        failure = campaign.shrink(total.failures[0])
        pytest.fail(f"{failure.message}\n{failure.command}", pytrace=False)
    assert len(total.schedules) >= 200_000
