"""Lets sensor nodes run for long while links, power and broker break at random.

At the end nothing may be lost, nothing duplicated at QoS 2, and the heap has to be
what it was at the start.
"""
