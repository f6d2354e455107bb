# Runs on the board: erases the journal, in which nothing is, for another client.
import board

_device = board.journal_area()
for _block in range(_device.ioctl(4, 0)):
    _device.ioctl(6, _block)
