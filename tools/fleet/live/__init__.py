"""A live broker as a source: what it delivers is on disk before it is acknowledged."""
