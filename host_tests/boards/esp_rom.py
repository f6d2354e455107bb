"""A stand-in for the boot loader in an ESP32's ROM, on a pseudo terminal.

Speaks Espressif's serial protocol as far as `esptool write-flash` uses it: sync,
registers, loading the stub, compressed writing, MD5.  The flash is a bytearray.
"""

import contextlib
import hashlib
import os
import pty
import select
import struct
import threading
import tty
import zlib

_END, _ESC = b"\xc0", b"\xdb"
SYNC, READ_REG, SECURITY_INFO = 0x08, 0x0A, 0x14
MEM_BEGIN, MEM_END, MEM_DATA = 0x05, 0x06, 0x07
DEFL_BEGIN, DEFL_DATA, DEFL_END = 0x10, 0x11, 0x12
MD5 = 0x13

MAGIC_REGISTER = 0x40001000
ESP32_MAGIC = 0x00F01D83
CHIP_IDS = {"esp32c3": 5}
SPI_W0 = 0x3FF42080  # of an ESP32
WINBOND_4MB = 0x1640EF


class EspRom:
    """A chip `mcu` in download mode; `port` is where it answers, `flash` what was written.

    `lose_port_after`: so many bytes of written flash later the cable is pulled.
    """

    def __init__(self, mcu, lose_port_after=None):
        self.mcu = mcu
        self.flash = bytearray(b"\xff" * (4 << 20))
        self.commands = []
        self._lose_after = lose_port_after
        self._is_stub = False
        self._inflate = None
        self._at = 0
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        os.write(self._wake_write, b"x")
        self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _serve(self):
        got, is_lost = b"", False
        while not is_lost:
            ready = select.select([self._master, self._wake_read], [], [])[0]
            if self._wake_read in ready:
                break
            *packets, got = (got + os.read(self._master, 65536)).split(_END)
            for packet in filter(None, packets):
                packet = packet.replace(b"\xdb\xdc", _END).replace(b"\xdb\xdd", _ESC)
                is_lost = is_lost or self._answer(packet)
        with contextlib.suppress(OSError):
            os.close(self._master)
            os.close(self._slave)

    def _answer(self, packet):
        # -> whether the cable is pulled now.
        _, command, _, _ = struct.unpack_from("<BBHI", packet)
        data = packet[8:]
        self.commands.append(command)
        if command == SYNC:
            for _ in range(8):
                # A value of 0 would say that the stub runs already.
                self._reply(command, value=0x20120707)
        elif command == READ_REG:
            self._reply(command, value=self._register(struct.unpack("<I", data)[0]))
        elif command == SECURITY_INFO:
            if self.mcu == "esp32":  # its ROM knows it not
                self._reply(command, status=b"\x01\x05")
            else:
                self._reply(command, struct.pack("<IB7sII", 0, 0, b"", CHIP_IDS[self.mcu], 0))
        elif command == MEM_END:
            self._reply(command)
            if struct.unpack_from("<II", data)[0] == 0:  # run what was loaded
                self._is_stub = True
                self._send(b"OHAI")
        elif command == MD5:
            start, size = struct.unpack_from("<II", data)
            self._reply(command, hashlib.md5(self.flash[start : start + size]).digest())
        else:
            self._write(command, data)
            self._reply(command)
        return self._lose_after is not None and self._lose_after <= 0

    def _write(self, command, data):
        if command == DEFL_BEGIN:
            size, _, _, self._at = struct.unpack_from("<IIII", data)
            self._inflate = zlib.decompressobj()
            self.flash[self._at : self._at + size] = b"\xff" * size
        elif command == DEFL_DATA:
            size = struct.unpack_from("<I", data)[0]
            body = self._inflate.decompress(data[16 : 16 + size])
            self.flash[self._at : self._at + len(body)] = body
            self._at += len(body)
            if self._lose_after is not None:
                self._lose_after -= len(body)

    def _register(self, address):
        known = {MAGIC_REGISTER: ESP32_MAGIC, SPI_W0: WINBOND_4MB} if self.mcu == "esp32" else {}
        return known.get(address, 0)

    def _reply(self, command, data=b"", value=0, status=b"\0\0"):
        status = status if self._is_stub else status + b"\0\0"
        self._send(
            struct.pack("<BBHI", 1, command, len(data) + len(status), value) + data + status
        )

    def _send(self, packet):
        body = packet.replace(_ESC, b"\xdb\xdd").replace(_END, b"\xdb\xdc")
        os.write(self._master, _END + body + _END)
