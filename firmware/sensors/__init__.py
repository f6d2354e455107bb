"""Sensors: one small module per part, all with the same face.

A sensor has one method, `measure(reading)`: take a sample now and
`reading.add(kind, value)` each of its values, as integers in the units of
docs/reference/readings.md, without allocating and in well under a second.  It raises OSError
when the part does not answer; the reading then goes out without its values.
Which sensors a board has, its `board.py` says.
"""
