"""Which order the receivers can count on with these settings, and what would be stronger.

Carries out SIB-ADVISE: the rules are those of strict message ordering on a service
integration bus and of MQTT 5.0 §4.6, which hold for any version.  Pure: settings
in, advice out.
"""

from dataclasses import dataclass, field

# What a receiver of one topic may see of 1, 2, 3, 4, the weakest first.
ORDERS = {
    "none": "any order, with gaps: 1,3,2",
    "gaps": "in order within one connection, with gaps: 1,2,4",
    "resent": "first appearances in order, runs repeated: 1,2,3,2,3,4",
    "strict": "in order, at worst the last one repeated: 1,2,3,3,4",
    "once": "in order, each exactly once: 1,2,3,4",
}


@dataclass(frozen=True)
class Client:
    """What the settings file does not say about the client: MQTTClient's arguments."""

    ordered: bool = False
    overflow: str = "refuse"
    has_max_age: bool = False
    clean_session: bool = False
    tasks: int = 1


@dataclass
class Advice:
    """For one stream: `order` is a key of ORDERS; `broken` are (rule, what to change)."""

    stream: int
    qos: int
    order: str
    broken: list = field(default_factory=list)


def advise(settings, client):
    """The Advice for each stream of a checked settings dict."""
    return [_advise_stream(i, qos, settings, client) for i, qos in enumerate(settings["streams"])]


def refusals(settings, client):
    """Why the client itself will refuse these settings; empty when it takes them."""
    if not client.ordered:
        return []
    wrong = []
    if 0 in settings["streams"] or len(set(settings["streams"])) > 1:
        wrong.append("SIB-RELIABILITY: ordered=True takes one QoS, 1 or 2, for all streams")
    if client.overflow != "refuse" or client.has_max_age:
        wrong.append('SIB-NOEXC: ordered=True takes overflow="refuse" and no max_age')
    return wrong


def notes(settings, client):
    """What no setting of the producer can promise; one text each."""
    told = [
        "SIB-ROUTE: order holds per device and topic; messages of two devices interleave",
        "SIB-NONDURABLE: a receiver needs a session of its own that the broker keeps "
        "(clean session off); a new subscription starts anew",
        "MQTT-4.6.0-6: a shared subscription spreads messages over receivers: no order",
    ]
    if settings["store"] == "ram":
        told.append(
            'store "ram": a reset forgets what was accepted; what arrives is still in order, '
            'with a gap; store = "journal" closes it'
        )
    if client.clean_session:
        told.append(
            "clean session: a reconnect forgets what was in flight; connect(clean_session=False)"
        )
    return told


def _advise_stream(number, qos, settings, client):
    advice = Advice(number, qos, "once" if qos == 2 else "resent")
    window = 1 if client.ordered else settings["max_inflight"]
    if qos == 1 and window == 1:
        advice.order = "strict"
    elif qos == 1:
        advice.broken.append(
            ("MQTT-4.6-RM1", f"max_inflight is {window}; with 1 no later message overtakes")
        )
    if qos == 1:
        advice.broken.append(("SIB-RELIABILITY", "QoS 2 would leave out the repeats"))
    if client.clean_session and qos:
        _weaken(advice, "gaps", "SIB-NONDURABLE", "keep the session: clean_session=False")
    if (client.overflow != "refuse" or client.has_max_age) and qos:
        what = "max_age" if client.has_max_age else f'overflow="{client.overflow}"'
        _weaken(advice, "gaps", "SIB-NOEXC", f"{what} leaves messages out; refuse instead")
    if qos == 0:
        _weaken(advice, "gaps", "SIB-RELIABILITY", "QoS 0 is best effort; use QoS 1 or 2")
    if client.tasks > 1:
        _weaken(advice, "none", "SIB-SINGLE", "publish from one task, or order is a guess")
    return advice


def _weaken(advice, order, rule, what):
    known = list(ORDERS)
    advice.order = min(advice.order, order, key=known.index)
    advice.broken.append((rule, what))


def load(profile, settings):
    """{name: text} of what the settings mean for this board's memory and flash."""
    seconds = settings["interval_ms"] / 1000
    kept = sum(qos > 0 for qos in settings["streams"])
    told = {}
    if settings["store"] == "journal" and kept:
        years = profile.journal.life_years(seconds / kept)
        told["journal"] = f"lasts {years:,.0f} years at {kept} messages per {seconds:g} s"
    if settings["store"] == "ram":
        slots = settings["max_inflight"] + settings["max_mqueue_len"]
        needed = slots * settings["buffer_size"]
        share = 100 * needed // profile.memory.heap
        told["memory"] = f"the queue takes {needed:,} bytes, {share} % of the heap"
    minutes = settings["max_mqueue_len"] * seconds / max(kept, 1) / 60
    told["offline"] = f"the queue bridges {minutes:,.0f} min without a broker"
    return told
