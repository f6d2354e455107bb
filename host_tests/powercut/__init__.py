"""Power cuts at every flash operation of the journal, twice, against a reference model.

A scenario is a list of calls of the store's face.  It runs once on the flash model,
which shows the flash before each operation; each of these moments is then cut in
every way, recovered, cut again during the recovery, and carried on.
"""
