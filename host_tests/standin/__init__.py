"""Stand-ins for what a client works with, for tests, simulation and measurements.

They share no code with `lib/`: an oracle that does proves nothing.
"""
