"""The programs for the computer: boards, brokers, simulation, the fleet pipeline.

`python -m tools` lists them.  Nothing under `lib/` or `firmware/` imports this.
"""
