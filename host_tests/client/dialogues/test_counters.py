"""client.stats: every counter counts each happening once, and more than one of them."""

from host_tests.client.dialogue import Dialogue


def test_dropped_counts_each_message_that_grew_too_old():
    """RT-MQUEUE: with several ages at once, each goes when its time comes.

    max_age 10, 5, 20, none behind a window of 1, all unanswered
    """
    d = Dialogue(is_queueing=True, max_inflight=1, keepalive=0, retry_interval=0)
    d.publish(b"0")
    dropped = []
    d.client.on_drop = lambda packet_id, reason: dropped.append(packet_id)
    for age in (10, 5, 20, 0):
        d.publish(b"%d" % age, max_age=age)
    d.wait(5.1)
    assert dropped == [3]
    d.wait(5)
    assert dropped == [3, 2]
    d.wait(9)
    assert dropped == [3, 2]
    d.wait(1)
    assert dropped == [3, 2, 4] and d.client.stats.dropped == 3
    d.wait(100)
    assert (d.client.inflight, d.client.queued) == (1, 1)
