# Runs on the board: prints the journal's flash, one block per line in base64; a
# block that is erased is a line with "-".
import binascii

import board

_device = board.journal_area()
_size = _device.ioctl(5, 0)
_buf = bytearray(_size)
_erased = b"\xff" * _size
print(_size)
for _block in range(_device.ioctl(4, 0)):
    _device.readblocks(_block, _buf)
    print("-" if _buf == _erased else binascii.b2a_base64(_buf).decode().strip())
