"""The reason codes of MQTT 5, for a person: what happened, what to do.

A module of its own, loaded with the first of them that has to be told.  MQTT 5 §2.4.
"""

TEXTS = {
    0x80: "broker gives no reason: see its log and access rules",
    0x81: "broker could not read a packet of ours",
    0x82: "broker says that we broke the protocol",
    0x83: "broker refused for a reason of its own: see its log",
    0x87: "broker says not authorized: check its access rules",
    0x89: "broker is busy: try again later",
    0x8A: "broker has banned this client: ask who runs it",
    0x8B: "broker is shutting down: try again later",
    0x8C: "broker wants another way to log in",
    0x8D: "broker heard nothing in time: poll() more often, or raise keepalive",
    0x8E: "another client connected with this client id: one for each device",
    0x8F: "broker does not take this filter",
    0x90: "broker does not take this topic",
    0x93: "broker had more messages to answer than it allows",
    0x94: "broker does not take this topic alias",
    0x95: "larger than the broker takes: send less",
    0x96: "broker gets too many messages: send less often",
    0x97: "broker's quota is used up: send less, or raise it there",
    0x98: "broker's administrator closed the connection",
    0x99: "payload is not what its format property says",
    0x9A: "broker keeps no messages: publish without retain",
    0x9B: "broker does not take this QoS: publish with a lower one",
    0x9C: "broker is not available here: use the server_reference",
    0x9D: "broker has moved: use the server_reference",
    0x9E: "broker has no shared subscriptions",
    0x9F: "broker gets too many connections: try again later",
    0xA0: "broker allows no longer connection: reconnect()",
    0xA1: "broker has no subscription identifiers",
    0xA2: "broker has no wildcards in filters",
}
