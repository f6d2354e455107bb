"""The store that the dialogues give to client after client."""

from tools.standin.store import KeepingStore

__all__ = ("KeepingStore",)
