"""Clients with one mistake each, made by replacing one step of the real one.

They test the simulator: a run that misses one of them proves nothing.  Each entry of
`WRONG` names what is replaced, by what, and a part of the default run that meets it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from host_tests.sim.campaign import Job
from host_tests.sim.script import parse
from host_tests.sim.store import SurvivingStore
from umqtt31 import FULL, Journal, MQTTError, terms
from umqtt31 import client as client_module
from umqtt31.client import MQTTClient
from umqtt31.held import Held
from umqtt31.protocol import HANDLED, Protocol
from umqtt31.recovery import Recovery
from umqtt31.v5 import Protocol5

_PUBLISH, _PUBREL = 0x30, 0x60
_WAIT_PUBREC = 0x50
_DUP = 0x08
_MAYBE_SENT = 0x80


class Wrong(NamedTuple):
    """`change(original)` gives the method that replaces `owner.name`."""

    owner: Any
    name: str
    change: Callable
    job: Job
    rules: tuple[str, ...]


def _single(script, *rules):
    return Job("single", str(parse(script))), rules


def _first_part(parts, script, *rules):
    return Job("single", str(parse(script)), kinds=2, part=0, parts=parts), rules


def _each_publish(change):
    # Changes the first byte of each PUBLISH that next() has ready.
    def wrap(next_packet):
        def wrong(session):
            is_there = next_packet(session)
            if is_there and session.left == session.end and session.out[0] & 0xF0 == _PUBLISH:
                session.out[0] = change(session.out[0])
            return is_there

        return wrong

    return wrap


def _pubrel_without_dup(answer):
    def wrong(session, first, packet_id):
        answer(session, first & ~_DUP if first & 0xF0 == _PUBREL else first, packet_id)

    return wrong


def _same_id(next_id):
    def wrong(session):
        session._id_end = session.last_id = 0
        return 1

    return wrong


def _sent(session):
    return session.count - session.unsent


def _waits(session, k):
    return session._waits[session._slot(k)] & 0x70


def _pubrel_newest_first(release):
    def wrong(session):
        for k in reversed(range(_sent(session))):
            if _waits(session, k) == _WAIT_PUBREC:
                break
            if _waits(session, k) == _PUBREL:
                session._release_one(session._slot(k))

    return wrong


def _pubrel_at_once(release):
    # Past older ones that still await their PUBREC.
    def wrong(session):
        for k in range(_sent(session)):
            if _waits(session, k) == _PUBREL:
                session._release_one(session._slot(k))

    return wrong


def _publish_after_pubrel(rewind):
    def wrong(session):
        rewind(session)
        for k in range(session.count):
            slot = session._slot(k)
            if _waits(session, k) >= _PUBREL:
                session._waits[slot] = session._waits[slot] & ~0x70 | _WAIT_PUBREC

    return wrong


def _publish_after_reset(restore):
    def wrong(recovery, slot, packet_id, qos, has_pubrec, maybe_sent):
        restore(recovery, slot, packet_id, qos, False, maybe_sent)

    return wrong


def _reordered(reorder):
    # Changes the order of the ring when all is to be sent again.
    def wrap(rewind):
        def wrong(session):
            rewind(session)
            slots = [session._slot(k) for k in range(session.count)]
            reorder(slots, session.inflight())
            for k, slot in enumerate(slots):
                session._order[(session.first + k) % session._n] = slot

        return wrong

    return wrap


def _newest_first(slots, in_flight):
    slots[:in_flight] = slots[:in_flight][::-1]


def _new_first(slots, in_flight):
    if in_flight < len(slots):
        slots.insert(0, slots.pop(in_flight))


def _resend_nothing(rewind):
    def wrong(session):
        rewind(session)
        session.unsent = session.count - session.inflight()

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


def _forget_held(add):
    def wrong(held, packet_id, now):
        add(held, packet_id, now)
        held.remove(packet_id)

    return wrong


def _around_handler(around):
    # While poll() runs, the handler is `around(client, handler, message)`.
    def wrap(poll):
        def wrong(client, *more):
            handler = client.on_message
            client.on_message = lambda message: around(client, handler, message)
            try:
                return poll(client, *more)
            finally:
                client.on_message = handler

        return wrong

    return wrap


def _ack_first(client, handler, message):
    protocol = client._protocol
    if message.qos:
        Protocol.acknowledge(protocol, message.qos, message.packet_id, protocol.now)
        client._push()
        protocol.acknowledge = lambda *_: None
    handler(message)


def _ack_in_spite_of_error(client, handler, message):
    try:
        handler(message)
    except Exception:
        client._protocol.acknowledge(message.qos, message.packet_id, client._protocol.now)
        raise


def _acks_backwards(next_packet):
    def wrong(session):
        n = len(session._acks) - session.room
        if not session.left:
            acks = [bytes(session._acks[i - 4 : i]) for i in range(n, 0, -4)]
            session._acks[:n] = b"".join(acks)
        return next_packet(session)

    return wrong


def _no_pubcomp(on_pubrel):
    # PUBREL for an id that is not held gets no answer.
    def wrong(protocol, packet_id):
        if protocol.held.find(packet_id) < 0:
            return HANDLED
        return on_pubrel(protocol, packet_id)

    return wrong


def _nothing_due(due_in):
    def wrong(protocol, now, most):
        return most

    return wrong


def _starved_for_ever(check_timers):
    def wrong(protocol, now):
        is_starved = protocol.is_starved
        protocol.is_starved = False
        code = check_timers(protocol, now)
        protocol.is_starved = is_starved
        return code

    return wrong


def _qos0_again(restore):
    def wrong(recovery, slot, packet_id, qos, has_pubrec, maybe_sent):
        restore(recovery, slot, packet_id, qos, has_pubrec, maybe_sent and qos > 0)

    return wrong


def _dup_in_window_only(restore):
    def wrong(recovery, slot, packet_id, qos, has_pubrec, maybe_sent):
        restore(recovery, slot, packet_id, qos, has_pubrec, maybe_sent)
        session = recovery._protocol
        if session.count > session.window:
            session._waits[slot] &= ~_MAYBE_SENT

    return wrong


def _pubrec_outlives_session(renew):
    def wrong(session, is_clean):
        before = bytes(session._waits)
        renew(session, is_clean)
        for k in range(session.count):
            slot = session._slot(k)
            if before[slot] & 0x70 >= _PUBREL:
                session._waits[slot] = before[slot]

    return wrong


def _ids_from_1(open_session):
    def wrong(session, *more):
        session.last_id = 0
        open_session(session, *more)

    return wrong


def _no_ages(expire):
    def wrong(client):
        pass

    return wrong


def _later_deadline(ping):
    def wrong(protocol):
        protocol.is_pinging = False
        ping(protocol)

    return wrong


def _one_buffer_for_answers(init):
    def wrong(session, *more):
        init(session, *more)
        session._spare_acks = session._acks

    return wrong


def _nothing(method):
    def wrong(*_):
        pass

    return wrong


def _rest_without_commit(rest):
    def wrong(client):
        client._expire()
        client._protocol.drowse(client_module.time.ticks_ms())

    return wrong


def _pause_outlives_connection(advance):
    def wrong(client):
        attempt_at = client._attempt_at
        is_done = advance(client)
        if is_done:
            client._attempt_at = attempt_at
        return is_done

    return wrong


def _told_when_flash_works(give_up):
    def wrong(client, k, reason):
        packet_id = client._protocol.remove(k)
        client._protocol.store.sync()
        if client.on_drop:
            client.on_drop(packet_id, reason)

    return wrong


def _answers_lost_with_the_store(next_packet):
    def wrong(session):
        try:
            return next_packet(session)
        except MQTTError:
            session.room = len(session._acks)
            raise

    return wrong


def _dead_link_refuses(publish):
    def wrong(client, topic, msg, *more):
        if client._protocol.left:
            client._push()
            client._tell()
        return publish(client, topic, msg, *more)

    return wrong


def _one_victim(make_room):
    def wrong(client, topic, msg):
        protocol = client._protocol
        flags = client._flags
        client._expire()
        k = -1
        if flags & 6 and client._find_victim and protocol.places() > 0:
            k = client._find_victim(protocol, topic)
        if k >= 0:
            client._give_up(k, FULL)
        code = protocol.accept(topic, msg, flags)
        if code < 0:
            raise MQTTError(-code)
        return code

    return wrong


def _deaf_while_stuck(poll):
    def wrong(client, *more):
        if client._protocol.left:
            client._push()
        if client._protocol.left:
            client._protocol.tick(client_module.time.ticks_ms(), 0)
            return 0
        return poll(client, *more)

    return wrong


def _stream_is_there_behind_hooks(expire):
    def wrong(client):
        had_stream = client._raw
        expire(client)
        if had_stream:
            client._raw.write  # noqa: B018 - a hook may have closed it

    return wrong


def _room_for_few(has_room):
    def wrong(held, packet_id):
        return held.count < 9 and has_room(held, packet_id)

    return wrong


def _only_oserror(errors):
    return (OSError,)


def _own_window_only(limit):
    def wrong(protocol, *more):
        limit(protocol, *more)
        protocol.window = protocol._most_window

    return wrong


def _aliases_outlive_connection(limit):
    def wrong(protocol, *more):
        aliases = protocol._aliases
        limit(protocol, *more)
        protocol._aliases = aliases or protocol._aliases

    return wrong


def _refused_and_goes_on(on_refusal):
    def wrong(protocol, first, packet_id, reason):
        protocol.on_ack(first, packet_id)

    return wrong


def _refused_and_forgotten(on_refusal):
    def wrong(protocol, first, packet_id, reason):
        slot = protocol._find(packet_id)
        if slot >= 0:
            protocol.remove(protocol._index(slot))

    return wrong


def _retry_at_level_5(begin):
    def wrong(protocol, *more):
        begin(protocol, *more)
        protocol.retry_ms = 30_000

    return wrong


def _any_size(refusal):
    def wrong(protocol, n, flags):
        return 0

    return wrong


def _unread_and_given_up(get):
    def wrong(journal, slot, buf):
        try:
            return get(journal, slot, buf)
        except MQTTError:
            return 0

    return wrong


def _unread_and_taken_for_sent(send):
    def wrong(protocol, slot):
        unsent = protocol.unsent
        try:
            return send(protocol, slot)
        except MQTTError:
            protocol.unsent = unsent - 1
            raise

    return wrong


def _refused_only(find_expired):
    def wrong(protocol, now):
        k = find_expired(protocol, now)
        return k if k < 0 or k > 0xFFFF else -1

    return wrong


def _saying(**values):
    # CONNECT says `values` in the place of the client's.
    def wrap(encode):
        return lambda **given: encode(**(given | values))

    return wrap


def _own_keepalive(limit):
    def wrong(protocol, *more):
        asked_ms = protocol.keepalive_ms
        limit(protocol, *more)
        protocol.keepalive_ms = asked_ms

    return wrong


def _session_kept_all_the_same(renew):
    def wrong(protocol, is_clean):
        if is_clean:
            renew(protocol, is_clean)

    return wrong


_OFFLINE = " start=offline deferred=1"
_FULL_JOURNAL = (
    "up=121212121212 size=20 grow=14 buffer=250 window=2 queue=20 store=journal blocks=5"
    " overflow=drop_oldest start=offline"
)
WRONG = {
    "dup forgotten": Wrong(
        Protocol, "next", _each_publish(lambda first: first & ~_DUP),
        *_single("up=1 window=1", "31-2.1-DUP"),
    ),
    "dup always": Wrong(
        Protocol, "next", _each_publish(lambda first: first | _DUP if first & 6 else first),
        *_single("up=1 window=1" + _OFFLINE, "31-2.1-DUP"),
    ),
    "dup of pubrel forgotten": Wrong(
        Protocol, "_answer", _pubrel_without_dup, *_single("up=2 window=1", "31-2.1-DUP")
    ),
    "id reused": Wrong(Protocol, "_next_id", _same_id, *_single("up=22 window=2", "31-2.4-ID")),
    "pubrel order swapped": Wrong(
        Protocol, "_release", _pubrel_newest_first,
        *_single("up=22 window=2", "31-4.3-STAGE", "MQTT-4.6.0-4"),
    ),
    "pubrel at once": Wrong(
        Protocol, "_release", _pubrel_at_once, *_single("up=22 window=2", "31-4.3-STAGE")
    ),
    "publish after pubrel": Wrong(
        Protocol, "rewind", _publish_after_pubrel, *_single("up=2 window=1", "MQTT-4.3.3-6")
    ),
    "publish after pubrel and reset": Wrong(
        Recovery, "restore", _publish_after_reset, *_single("up=2 window=1", "MQTT-4.3.3-6")
    ),
    "resend order reversed": Wrong(
        Protocol, "rewind", _reordered(_newest_first), *_single("up=11 window=2", "MQTT-4.6.0-1")
    ),
    "nothing resent": Wrong(
        Protocol, "rewind", _resend_nothing, *_single("up=1 window=1", "termination")
    ),
    "new before resend": Wrong(
        Protocol, "rewind", _reordered(_new_first), *_single("up=111 window=2", "MQTT-4.6.0-1")
    ),
    "window exceeded": Wrong(
        Protocol, "__init__", _wider_window, *_single("up=11 window=1", "RT-INFLIGHT", "RT-MQUEUE")
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
        Held, "add", _forget_held, *_single("down=2 serve=1", "MQTT-4.3.3-10")
    ),
    "ack before handler": Wrong(
        MQTTClient, "_poll", _around_handler(_ack_first),
        *_single("down=1 serve=1", "MQTT-4.3.2-4", "31-3.3-QOS2RX"),
    ),
    "acks backwards": Wrong(
        Protocol, "next", _acks_backwards, *_single("down=11 serve=2", "MQTT-4.6.0-2")
    ),
    "pubrecs backwards": Wrong(
        Protocol, "next", _acks_backwards, *_single("down=22 serve=2", "MQTT-4.6.0-3")
    ),
    "pubrel unanswered": Wrong(
        Protocol, "_on_pubrel", _no_pubcomp, *_single("down=2 serve=1", "MQTT-4.3.3-11")
    ),
    "ack in spite of an error": Wrong(
        MQTTClient, "_poll", _around_handler(_ack_in_spite_of_error),
        *_single("down=1 serve=1", "31-3.3-QOS2RX"),
    ),
    "no ping": Wrong(
        Protocol, "_ping_in", _nothing_due, *_single("up=1 window=1", "31-2.2-KA", "termination")
    ),
    "no retry": Wrong(
        Protocol, "_retry_in", _nothing_due, *_single("up=1 window=1", "termination")
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
        Protocol, "_check_timers", _starved_for_ever,
        *_single("down=2222 held=1 serve=3", "termination"),
    ),
    "dup only in the window": Wrong(
        Recovery, "restore", _dup_in_window_only, *_single("up=11 window=1", "31-2.1-DUP")
    ),
    "pubrec outlives its session": Wrong(
        Protocol, "renew", _pubrec_outlives_session,
        *_first_part(1, "up=22 window=2 sessions=cr late=1", "31-3.5-PUBREC"),
    ),
    "ids from 1 after a reset": Wrong(
        Protocol, "open", _ids_from_1,
        *_first_part(1, "up=2222 window=1 pace=1 store=ram", "MQTT-4.3.3-1"),
    ),
    "too old and kept": Wrong(
        MQTTClient, "_expire", _no_ages,
        *_first_part(2, "up=1111 window=1 start=offline age=5", "max_age"),
    ),
    "each ping moves the deadline": Wrong(
        Protocol, "ping", _later_deadline,
        *_first_part(2, "down=1 keepalive=20 ping_ms=5000", "termination"),
    ),
    "answers overwritten while half sent": Wrong(
        Protocol, "__init__", _one_buffer_for_answers,
        *_first_part(2, "down=111111 serve=8 spread_ms=1", "termination", "MQTT-4.6.0-2"),
    ),
    "held ids outlive their session": Wrong(
        Held, "clear", _nothing,
        *_first_part(1, "down=222 serve=2 level=4 sessions=ckr subscribe=1", "MQTT-4.3.2-4"),
    ),
    "deferred and never committed offline": Wrong(
        MQTTClient, "_rest", _rest_without_commit,
        *_first_part(2, "up=22 start=offline reboot=1 deferred=1", "31-4.1-Q2"),
    ),
    "pause outlives its connection": Wrong(
        MQTTClient, "_advance", _pause_outlives_connection,
        *_first_part(2, "down=11 spread_ms=560000000 keepalive=60000 sessions=mr", "termination"),
    ),
    "given up and nobody is told": Wrong(
        MQTTClient, "_give_up", _told_when_flash_works,
        *_first_part(
            2,
            _FULL_JOURNAL,
            "31-4.1-Q1", "31-4.1-Q2",
        ),
    ),
    "answers lost with the store": Wrong(
        Protocol, "next", _answers_lost_with_the_store,
        *_first_part(2, "down=2222 serve=2 store=journal", "MQTT-4.3.3-11", "termination"),
    ),
    "what cannot be read is given up": Wrong(
        Journal, "get", _unread_and_given_up,
        *_first_part(2, "up=111111 size=40 start=offline store=journal reboot=1", "overflow"),
    ),
    "what cannot be read is taken for sent": Wrong(
        Protocol, "_send", _unread_and_taken_for_sent,
        *_first_part(2, _FULL_JOURNAL, "31-4.3-WINDOW"),
    ),
    "dead link refuses": Wrong(
        MQTTClient, "publish", _dead_link_refuses,
        *_first_part(
            2, "up=11111111 down=11111111 serve=8 window=8 pace=2 size=20 pressure=30 hasty=1"
            " latency_ms=3 spread_ms=2",
            "MQTTError",
        ),
    ),
    "gives one up and refuses": Wrong(
        MQTTClient, "_make_room", _one_victim,
        *_first_part(
            2,
            _FULL_JOURNAL,
            "RT-MQUEUE",
        ),
    ),
    "deaf while a packet waits for room": Wrong(
        MQTTClient, "_poll", _deaf_while_stuck,
        *_first_part(
            2, "up=2222 down=11111111 start=offline size=20 serve=20 pressure=60",
            "termination", "31-2.2-KA", "connection",
        ),
    ),
    "stream used behind a hook that closed it": Wrong(
        MQTTClient, "_expire", _stream_is_there_behind_hooks,
        *_first_part(2, "up=1112 window=1 start=offline age=5 inside=disconnect",
                     "AttributeError"),
    ),
    "certificate error not caught": Wrong(
        client_module, "_STREAM_ERRORS", _only_oserror,
        *_single("up=1 window=1", "ValueError"),
    ),
    "5: window of the broker ignored": Wrong(
        terms, "_limit", _own_window_only,
        *_first_part(1, "up=222 window=3 level=5 receive=1", "MQTT-3.3.4-7"),
    ),
    "5: topic alias of another connection": Wrong(
        terms, "_limit", _aliases_outlive_connection,
        *_first_part(1, "up=11111 window=4 pace=1 level=5 aliases=1 expiry=20", "MQTT-3.3.2-8"),
    ),
    "5: flow goes on after a refusal": Wrong(
        Protocol5, "_on_refusal", _refused_and_goes_on,
        *_first_part(1, "up=222 window=3 level=5 receive=1", "31-3.5-PUBREC"),
    ),
    "5: refused and nobody is told": Wrong(
        Protocol5, "_on_refusal", _refused_and_forgotten,
        *_first_part(1, "up=111 window=3 level=5 receive=1", "MQTT-4.3.3-5"),
    ),
    "5: sent again on one connection": Wrong(
        Protocol5, "begin", _retry_at_level_5,
        *_first_part(1, "up=222 window=3 level=5 receive=1", "MQTT-4.4.0-1"),
    ),
    "5: age not counted down": Wrong(
        Protocol5, "_write_age", _nothing,
        *_first_part(1, "up=1212 down=12 window=1 start=offline level=5 talk=1 age=300",
                     "max_age"),
    ),
    "5: larger than the broker takes": Wrong(
        Protocol5, "refusal", _any_size,
        *_first_part(1, "up=2212 window=3 size=9 grow=6 buffer=200 level=5 most=30",
                     "MQTT-3.2.2-15"),
    ),
    "5: too old and sent all the same": Wrong(
        Protocol5, "find_expired", _refused_only,
        *_first_part(1, "up=1212 down=12 window=1 start=offline level=5 talk=1 age=300",
                     "max_age"),
    ),
    "5: own receive maximum not kept": Wrong(
        terms, "encode", _saying(receive_maximum=65535),
        *_first_part(1, "down=222 held=2 serve=3 level=5", "connection"),
    ),
    "5: session expiry not said": Wrong(
        terms, "encode", _saying(session_expiry_interval=0),
        *_first_part(1, "up=222 window=3 level=5 receive=1", "MQTT-3.1.2-23"),
    ),
    "5: keep alive of the broker ignored": Wrong(
        terms, "_limit", _own_keepalive,
        *_first_part(1, "up=11 down=21 level=5 alive=20 talk=1 subscribe=1", "31-2.2-KA"),
    ),
    "5: session gone and not noticed": Wrong(
        Protocol5, "renew", _session_kept_all_the_same,
        *_first_part(1, "up=22222 window=4 pace=1 level=5 aliases=1 expiry=20",
                     "31-2.1-DUP", "31-3.5-PUBREC", "31-4.1-Q2", "MQTT-4.3.3-6"),
    ),
    "bursts find no room": Wrong(
        Held, "has_room", _room_for_few,
        *_first_part(2, "down=" + "2" * 30 + " serve=30", "31-4.1-Q1", "31-4.1-Q2"),
    ),
}  # fmt: skip
