"""Synthetic fleets with known faults: captures to try the pipeline on, and the truth."""
