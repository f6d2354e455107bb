"""Speed and size of the client, each figure beside its budget and beside umqtt.simple.

Nothing here decides whether the project is right; it measures and prints.  Every
figure of one table comes from one run on one machine.
"""
