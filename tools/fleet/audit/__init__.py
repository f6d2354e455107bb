"""Judging packets.  Everything here works on Arrow tables and numpy arrays; no Spark."""
