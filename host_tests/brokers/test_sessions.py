"""Sessions that outlive a connection, and two clients that claim the same one."""

import pytest

from host_tests.brokers.clients import Node, Other, Watched, new_name
from host_tests.brokers.conftest import of_families
from umqtt31 import MQTTError

PUBREL = 6
SESSION_TAKEN_OVER = 0x8E


def test_b2c_clean_session_forgets_what_waited(node, other, topic):
    node.client.connect(False)
    node.client.subscribe(topic, 1)
    node.client.disconnect()
    other.publish(topic, b"forgotten", 1)
    node.client.connect()
    node.until(lambda: node.client.subscribe(topic, 1))
    other.publish(topic, b"new", 1)
    node.until(lambda: b"new" in node.payloads)
    node.client.disconnect()
    assert node.payloads == [b"new"]


@pytest.mark.parametrize("qos", [1, 2])
def test_c2b_messages_accepted_while_offline_go_out_in_order(family, broker, other, topic, qos):
    qos = min(qos, family.publish_qos)
    sent = [b"%d" % number for number in range(16)]
    other.subscribe(topic, qos)
    node = Node(broker.port, family)
    for payload in sent:
        node.client.publish(topic, payload, qos=qos)
    with node:
        node.until(lambda: not node.client.inflight + node.client.queued)
    other.wait(len(sent))
    assert other.payloads == sent


class EndingAtPubrel(Watched):
    """The first link ends as soon as the client has written PUBREL."""

    _has_ended = False

    def saw(self, first, is_before):
        if first >> 4 == PUBREL and not is_before and not self._has_ended:
            self._has_ended = True
            raise OSError(104)


@pytest.mark.parametrize(
    "family", of_families(lambda family: ((),) if family.publish_qos == 2 else ()), indirect=True
)
def test_c2b_qos2_link_lost_behind_pubrel_then_it_comes_again(family, broker, topic):
    """31-4.1-Q2: whose write failed is sent as new, which each broker takes, marked DUP or not."""
    node = Node(broker.port, family)
    node.client.connect(False, EndingAtPubrel(broker))
    node.client.publish(topic, b"x", qos=2)
    node.until(lambda: not node.client.inflight)
    assert node.client.stats["reconnects"] == 1
    node.client.disconnect()


def test_second_client_with_the_same_id_takes_over(family, broker, topic):
    """31-3.1-CLIENTID: the older one sees a lost link, and at level 5 the reason."""
    client_id = new_name("twin")
    older = Node(broker.port, family, client_id)
    older.client.connect()
    with Node(broker.port, family, client_id) as newer:
        with pytest.raises(MQTTError):
            while True:
                older.client.poll(1000)
        assert not older.client.is_connected
        if family.level == 5:
            told = {SESSION_TAKEN_OVER} if family.gives_reason else {0, SESSION_TAKEN_OVER}
            assert older.client.v5.reason in told
        newer.client.subscribe(topic, 1)
        newer.publish(topic, b"x", qos=1)
        newer.until(lambda: newer.received)


def test_client_id_of_23_characters_is_taken(family, broker):
    """31-3.1-CLIENTID"""
    with Node(broker.port, family, "x" * 23) as node:
        assert node.client.is_connected


def test_b2c_qos2_window_of_the_broker_larger_than_ours_keeps_all_in_order(family, broker, topic):
    """RT-AWAITREL: what is refused for want of room comes again, once, in its place."""
    qos = family.publish_qos
    sent = [b"%d" % number for number in range(60)]
    with Other(broker.port, family, window=family.qos2_window) as other:
        node = Node(broker.port, family, max_awaiting_rel=1)
        node.client.connect(False)
        node.client.subscribe(topic, qos)
        other.publish_all(topic, sent, qos)
        node.until(lambda: len(set(node.payloads)) == len(sent))
        node.client.disconnect()
    assert node.payloads == sent
