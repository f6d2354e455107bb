"""Situations with a known truth, recorded with a real broker and real clients.

`catalogue` lists them, each with what an audit must find in it; `record` makes the
captures anew: `python -m host_tests.fleet.situations FOLDER`.
"""
