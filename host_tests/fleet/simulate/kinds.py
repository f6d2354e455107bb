"""All kinds of faults by name, and which device can show which."""

from . import away, faults

# Kind: (function, the device's QoS that it needs, does it need a subscriber of its own)
KINDS = {
    "never_sent": (faults.never_sent, (0, 1, 2), False),
    "not_forwarded": (faults.not_forwarded, (1, 2), False),
    "forwarded_twice": (faults.forwarded_twice, (2,), False),
    "overtaken": (faults.overtaken, (0, 1, 2), False),
    "resent": (faults.resent, (1, 2), False),
    "resent_without_dup": (faults.resent_without_dup, (1, 2), False),
    "dup_at_first": (faults.dup_at_first, (0, 1, 2), False),
    "publish_after_pubrel": (faults.publish_after_pubrel, (2,), False),
    "id_in_flight": (faults.id_in_flight, (1, 2), False),
    "resend_order": (faults.resend_order, (1, 2), False),
    "pubrel_order": (faults.pubrel_order, (2,), False),
    "acknowledge_order": (faults.acknowledge_order, (1, 2), True),
    "redelivered": (faults.redelivered, (1,), True),
    "silent": (faults.silent, (0, 1, 2), False),
    "reset": (faults.reset, (0, 1, 2), False),
    "no_answer": (faults.no_answer, (1, 2), False),
    "stray_answer": (faults.stray_answer, (0, 1, 2), False),
    "id_zero": (faults.id_zero, (1,), False),
    "qos_three": (faults.qos_three, (0, 1, 2), False),
    "wildcard_topic": (faults.wildcard_topic, (0, 1, 2), False),
    "pubrel_flags": (faults.pubrel_flags, (2,), False),
    "away_clean": (away.away_clean, (1, 2), True),
    "away_kept": (away.away_kept, (1, 2), True),
    "away_one_lost": (away.away_one_lost, (1, 2), True),
    "away_expired": (away.away_expired, (1, 2), True),
    "message_expired": (away.message_expired, (1, 2), True),
    "refused": (away.refused, (1, 2), False),
    "forwarded_again": (away.forwarded_again, (1,), False),
}
# Whose protocol level must be 5.
_NEEDS_LEVEL_5 = {
    "away_expired": lambda device: device.subscriber.level == 5,
    "message_expired": lambda device: device.level == 5,
    "refused": lambda device: device.level == 5,
}
# What can be known of messages that are no readings.
PLAIN_KINDS = (
    *("not_forwarded", "away_clean", "away_kept", "away_one_lost", "away_expired"),
    *("message_expired", "refused", "forwarded_again"),
)


def pick(world, device, kinds):
    """One of `kinds` that this device can show, or `normal`."""
    has_own = device.subscriber.name[:1] == b"w"
    fit = [
        kind
        for kind in kinds
        if device.qos in KINDS[kind][1]
        and (has_own or not KINDS[kind][2])
        and _NEEDS_LEVEL_5.get(kind, lambda _: True)(device)
        and (kind in PLAIN_KINDS or not device.is_plain)
    ]
    # With another publisher nobody can tell what became of a plain value.
    if not fit or device.has_foreign:
        return faults.normal
    kind = world.random.choice(fit)
    world.truth.faults[kind] = world.truth.faults.get(kind, 0) + 1
    return KINDS[kind][0]
