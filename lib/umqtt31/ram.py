"""The store without flash: fixed buffers in RAM, forgotten at a reset.

It keeps the encoded PUBLISH packets that `session` accepted until they are
acknowledged.  `journal.Journal` has the same face and keeps them on flash;
whatever is said here about a method holds for both.  No I/O, no clock, no
knowledge of MQTT: a packet is bytes, a slot is a number.
"""

import struct


class RamStore:
    """Messages in `slots` buffers of `slot_bytes` each, allocated by `open()`."""

    # True: what `put()` took is only durable after `commit()`, so the client
    # sends nothing before the next `poll()`, where one commit serves many.
    is_deferred = False

    level = 3  # of the protocol that the packets are for, set before `open()`

    # A store may have `buffers`: then a packet may be written to the start of
    # `buffers[slot]`, in place of `put()`, and it is told of neither pubrec() nor remove().
    # `Held`: a class as `held.Held`, if not that one, for the received QoS 2 ids.

    def open(self, client_id, slots, size, held):
        """Allocate everything; called once by the client's constructor.

        `client_id` is bytes; `slots` how many messages there may be at once
        (window and queue), `size` the largest packet in bytes, `held` how
        many received QoS 2 packet ids there may be at once.
        """
        self.buffers = buffers = []
        for _ in range(slots):
            buffers.append(bytearray(size))
        self._format = "%ds" % size

    def put(self, slot, packet_id, qos, buf, n, maybe_sent):
        """Keep the packet `buf[:n]` in a free slot -> False when there is no room.

        `maybe_sent` says that a connection is open, so the packet may be on the
        wire before anything else is recorded.
        """
        # The whole buffer is copied: a part would need a slice, which allocates.
        struct.pack_into(self._format, self.buffers[slot], 0, buf)
        return True

    def get(self, slot, buf):
        """Read the packet back into the start of `buf`; it says itself how long it is.

        -> 0 if it is no longer what was put there: then it is lost.
        """
        struct.pack_into(self._format, buf, 0, self.buffers[slot])

    # RAM has nothing to do for the rest: two empty methods stand for all of them.

    def recover(self, session):
        """Hand over what an earlier life left, oldest message first.

        Calls `session.restore(slot, packet_id, qos, has_pubrec, maybe_sent)` for
        each message, choosing the slots, `session.restore_held(id)` for each
        received QoS 2 id, `session.restore_last_id(id)` and `session.restore_clean(flag)`,
        what `renew()` was told last.
        """

    # renew(is_clean): the broker has a new session: no message was sent in it, none has
    # seen PUBREC, no id is held.  `is_clean`: the session ends with its connection.
    # pubrec(slot): PUBREC was seen; from now on the flow goes on with PUBREL only.
    # hold(packet_id): a QoS 2 message with this id was received and handed over; told again
    # where it is repeated, as it may have raised.
    # release(packet_id): its PUBREL came; the id is a new message from now on.
    # remove(slot): the message is done or given up.  Lazy: need not survive a reset.
    renew = pubrec = hold = release = remove = recover

    def online(self):
        """A connection is open: from now on every message may have been sent."""

    # commit(): make everything so far durable.  A packet that must not overtake its
    # record is sent after this returned.
    # sync(): as commit(), and what was lazy too: before a planned switch-off.
    # clear(): forget everything (clean session).
    commit = sync = clear = online
