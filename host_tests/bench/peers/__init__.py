"""umqtt31 beside other clients for MicroPython, all in one run on real MicroPython.

The others are read from a folder that the person gives and are never kept here.  Each has
an adapter in `device/adapters/`: a few lines that give it one face.
"""
