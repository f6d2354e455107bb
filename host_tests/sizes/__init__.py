"""What the library costs a board: bytes of .mpy, heap, frames; `test_bounds.py` has the bounds."""
