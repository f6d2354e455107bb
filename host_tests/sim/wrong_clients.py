"""Clients with one mistake each, made by replacing one step of the real one.

They test the simulator: a run that misses one of them proves nothing.  Each entry of
`WRONG` names what is replaced, by what, and a part of the default run that meets it.
"""

from collections.abc import Callable
from typing import NamedTuple

from tools.sim.campaign import Job
from tools.sim.store import SurvivingStore
from umqtt31.client import MQTTClient
from umqtt31.recovery import Recovery
from umqtt31.session import Session

_PUBLISH, _PUBREL = 0x30, 0x60
_DUP = 0x08


class Wrong(NamedTuple):
    """`change(original)` gives the method that replaces `owner.name`."""

    owner: type
    name: str
    change: Callable
    job: Job
    rules: tuple[str, ...]


def _single(script, *rules):
    return Job("single", script), rules


def _without_dup(next_packet):
    def wrong(session, buf, now):
        n = next_packet(session, buf, now)
        if n and buf[0] & 0xF0 == _PUBLISH:
            buf[0] &= ~_DUP
        return n

    return wrong


def _always_dup(next_packet):
    def wrong(session, buf, now):
        n = next_packet(session, buf, now)
        if n and buf[0] & 0xF6 > _PUBLISH and buf[0] & 0xF0 == _PUBLISH:
            buf[0] |= _DUP
        return n

    return wrong


def _pubrel_without_dup(next_packet):
    def wrong(session, buf, now):
        n = next_packet(session, buf, now)
        if n and buf[0] & 0xF0 == _PUBREL:
            buf[0] &= ~_DUP
        return n

    return wrong


def _same_id(next_id):
    def wrong(session):
        session.id_end = 0
        return 1

    return wrong


def _pubrel_newest_first(next_pubrel):
    def wrong(session, buf, now):
        order = session.order
        sent = session.count - session.queued - session.again
        session.order = order[:sent][::-1] + order[sent:]
        try:
            return next_pubrel(session, buf, now)
        finally:
            session.order = order

    return wrong


def _pubrel_at_once(next_pubrel):
    # Past older ones that still await their PUBREC.
    def wrong(session, buf, now):
        order = session.order
        sent = session.count - session.queued - session.again
        session.order = sorted(order[:sent], key=lambda slot: -(session.state[slot] & 7))
        try:
            return next_pubrel(session, buf, now)
        finally:
            session.order = order

    return wrong


def _publish_after_pubrel(rewind):
    def wrong(session, tries):
        rewind(session, tries)
        for slot in session.order[: session.again]:
            session.state[slot] = session.state[slot] & ~7 | 2

    return wrong


def _publish_after_reset(restore):
    def wrong(recovery, slot, packet_id, qos, has_pubrec, maybe_sent):
        restore(recovery, slot, packet_id, qos, False, maybe_sent)

    return wrong


def _resend_newest_first(rewind):
    def wrong(session, tries):
        rewind(session, tries)
        n = session.again
        session.order[:n] = session.order[:n][::-1]

    return wrong


def _resend_nothing(rewind):
    def wrong(session, tries):
        rewind(session, tries)
        session.again = 0

    return wrong


def _new_before_resend(rewind):
    def wrong(session, tries):
        rewind(session, tries)
        if session.queued:
            session.order.insert(0, session.order.pop(session.again))

    return wrong


def _wider_window(init):
    def wrong(session, store, window, *more):
        init(session, store, window, *more)
        session.window += 1

    return wrong


def _no_barrier(commit):
    def wrong(store):
        store._step()

    return wrong


def _only_commit(sync):
    return SurvivingStore.commit


def _no_record(record):
    def wrong(store, *_):
        store._step()

    return wrong


def _forget_held(hold):
    def wrong(session, packet_id, now):
        hold(session, packet_id, now)
        session.release(packet_id)

    return wrong


def _ack_before_handler(on_publish):
    def wrong(client, first, now):
        message = client._message
        link = client._link
        if message.read(first, link.field, link.length) and message.packet_id:
            client._ack(0x50 if first & 4 else 0x40, message.packet_id)
            client._send_acks(now)
        on_publish(client, first, now)

    return wrong


def _acks_backwards(send_acks):
    def wrong(client, now):
        n = client._acks_end
        client._acks[:n] = b"".join(bytes(client._acks[i - 4 : i]) for i in range(n, 0, -4))
        send_acks(client, now)

    return wrong


def _no_pubcomp(ack):
    # PUBREL for an id that is not held gets no answer.
    def wrong(client, first, packet_id):
        if first != 0x70 or client._session.held_count:
            ack(client, first, packet_id)

    return wrong


def _ack_in_spite_of_error(on_publish):
    def wrong(client, first, now):
        try:
            on_publish(client, first, now)
        except Exception:
            client._ack(0x50 if first & 4 else 0x40, client._message.packet_id)
            raise

    return wrong


def _no_ping(ping_in):
    def wrong(client, now, most):
        return most

    return wrong


def _no_retry(retry_in):
    def wrong(session, now, most):
        return most

    return wrong


def _never(step):
    def wrong(client, now):
        pass

    return wrong


def _qos0_again(restore):
    def wrong(recovery, slot, packet_id, qos, has_pubrec, maybe_sent):
        restore(recovery, slot, packet_id, qos, has_pubrec, maybe_sent and qos > 0)

    return wrong


def _dup_in_window_only(restore):
    def wrong(recovery, slot, packet_id, qos, has_pubrec, maybe_sent):
        restore(recovery, slot, packet_id, qos, has_pubrec, maybe_sent)
        session = recovery._session
        if session.queued:
            session.state[slot] &= ~0x08

    return wrong


_OFFLINE = " start=offline deferred=1"

WRONG = {
    "dup forgotten": Wrong(
        Session, "next", _without_dup, *_single("up=1 window=1", "31-2.1-DUP")
    ),
    "dup always": Wrong(
        Session, "next", _always_dup, *_single("up=1 window=1" + _OFFLINE, "31-2.1-DUP")
    ),
    "dup of pubrel forgotten": Wrong(
        Session, "next", _pubrel_without_dup, *_single("up=2 window=1", "31-2.1-DUP")
    ),
    "id reused": Wrong(Session, "next_id", _same_id, *_single("up=22 window=2", "31-2.4-ID")),
    "pubrel order swapped": Wrong(
        Session, "_next_pubrel", _pubrel_newest_first,
        *_single("up=22 window=2", "31-4.3-STAGE", "MQTT-4.6.0-4"),
    ),
    "pubrel at once": Wrong(
        Session, "_next_pubrel", _pubrel_at_once, *_single("up=22 window=2", "31-4.3-STAGE")
    ),
    "publish after pubrel": Wrong(
        Session, "rewind", _publish_after_pubrel, *_single("up=2 window=1", "MQTT-4.3.3-6")
    ),
    "publish after pubrel and reset": Wrong(
        Recovery, "restore", _publish_after_reset, *_single("up=2 window=1", "MQTT-4.3.3-6")
    ),
    "resend order reversed": Wrong(
        Session, "rewind", _resend_newest_first, *_single("up=11 window=2", "MQTT-4.6.0-1")
    ),
    "nothing resent": Wrong(
        Session, "rewind", _resend_nothing, *_single("up=1 window=1", "termination")
    ),
    "new before resend": Wrong(
        Session, "rewind", _new_before_resend, *_single("up=111 window=2", "MQTT-4.6.0-1")
    ),
    "window exceeded": Wrong(
        Session, "__init__", _wider_window, *_single("up=11 window=1", "RT-INFLIGHT", "RT-MQUEUE")
    ),
    "barrier missing": Wrong(
        SurvivingStore, "commit", _no_barrier,
        *_single("down=2 serve=1", "MQTT-4.3.3-10"),
    ),
    "pubrec not kept": Wrong(
        SurvivingStore, "pubrec", _no_record, *_single("up=2 window=1", "MQTT-4.3.3-6")
    ),
    "held id not kept": Wrong(
        SurvivingStore, "hold", _no_record, *_single("down=2 serve=1", "MQTT-4.3.3-10")
    ),
    "opening not kept": Wrong(
        SurvivingStore, "online", _no_record,
        *_single("up=1 window=1" + _OFFLINE, "31-2.1-DUP"),
    ),
    "held id forgotten": Wrong(
        Session, "hold", _forget_held, *_single("down=2 serve=1", "MQTT-4.3.3-10")
    ),
    "ack before handler": Wrong(
        MQTTClient, "_on_publish", _ack_before_handler, *_single("down=1 serve=1", "MQTT-4.3.2-4")
    ),
    "acks backwards": Wrong(
        MQTTClient, "_send_acks", _acks_backwards, *_single("down=11 serve=2", "MQTT-4.6.0-2")
    ),
    "pubrecs backwards": Wrong(
        MQTTClient, "_send_acks", _acks_backwards, *_single("down=22 serve=2", "MQTT-4.6.0-3")
    ),
    "pubrel unanswered": Wrong(
        MQTTClient, "_ack", _no_pubcomp, *_single("down=2 serve=1", "MQTT-4.3.3-11")
    ),
    "ack in spite of an error": Wrong(
        MQTTClient, "_on_publish", _ack_in_spite_of_error,
        *_single("down=1 serve=1", "31-3.3-QOS2RX"),
    ),
    "no ping": Wrong(
        MQTTClient, "_ping_in", _no_ping, *_single("up=1 window=1", "31-2.2-KA", "termination")
    ),
    "no retry": Wrong(
        Session, "retry_in", _no_retry, *_single("up=1 window=1", "termination")
    ),
    "qos 0 sent again": Wrong(
        Recovery, "restore", _qos0_again,
        *_single("up=1020 window=1 start=offline keep_qos0=1", "31-4.1-Q0"),
    ),
    "ordered without sync": Wrong(
        SurvivingStore, "sync", _only_commit,
        *_single("up=111 start=offline ordered=1", "MQTT-4.6-RM1"),
    ),
    "starved without end": Wrong(
        MQTTClient, "_check_starved", _never, *_single("down=2222 held=1 serve=3", "termination")
    ),
    "dup only in the window": Wrong(
        Recovery, "restore", _dup_in_window_only, *_single("up=11 window=1", "31-2.1-DUP")
    ),
}  # fmt: skip
