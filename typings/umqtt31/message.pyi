"""What `on_message` is called with."""

class Message:
    """A received message, in place in the client's buffer.

    One object serves all messages of a client, and is valid until the handler returns.
    Only `topic` and `payload` allocate.
    """

    qos: int
    """0, 1 or 2."""
    retain: bool
    """Was it kept by the broker from before the subscription?"""
    dup: bool
    """Has the broker sent it before, as far as it knows?"""
    packet_id: int
    """0 at QoS 0."""
    topic_len: int
    """Length of the topic in bytes."""
    payload_len: int
    """Length of the payload in bytes."""

    @property
    def topic(self) -> bytes:
        """The topic, in new bytes: allocates."""
    @property
    def payload(self) -> bytes:
        """The payload, in new bytes: allocates."""
    def copies(self) -> tuple[bytes, bytes]:
        """-> topic and payload as new bytes: quicker than the attributes."""
    def topic_is(self, name: bytes | bytearray | memoryview) -> bool:
        """Is the topic just `name`?"""
    def matches(self, pattern: bytes | bytearray | memoryview) -> bool:
        """Does the topic match the filter `pattern`, such as b"home/+/led"?  As at the broker,
        no wildcard takes a topic that begins with $."""
    def topic_into(self, target: bytearray | memoryview) -> int:
        """Copy the topic to the start of `target` -> bytes copied (what fits)."""
    def payload_into(self, target: bytearray | memoryview) -> int:
        """Copy the payload to the start of `target` -> bytes copied (what fits)."""
    def __getitem__(self, index: int) -> int:
        """Byte `index` of the payload.  Raises IndexError."""
