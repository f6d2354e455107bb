"""MicroPython's module `network` as far as Wi-Fi goes; the test says whether the link is up."""


class WLAN:
    """A station: `calls` are what it was told, `is_in_reach` whether joining succeeds."""

    PM_NONE, PM_PERFORMANCE, PM_POWERSAVE = 16, 17, 18

    def __init__(self, interface):
        assert interface == STA_IF
        self.is_up = False
        self.is_in_reach = False
        self.is_active = False
        self.is_trying = False
        self.number, self.dbm = STAT_IDLE, None
        self.calls = []

    def active(self, on=None):
        if on is not None:
            self.is_active = on
            self.calls.append("active")
        return self.is_active

    def config(self, **options):
        self.calls.append(options)

    def isconnected(self):
        return self.is_up

    def connect(self, *login):
        assert self.is_active
        self.calls.append(login)
        if self.is_trying:
            raise OSError("already connecting")
        self.is_up = self.is_in_reach

    def disconnect(self):
        self.calls.append("disconnect")

    def status(self, what=None):
        if what is None:
            return self.number
        if self.dbm is None:
            raise OSError("not connected")
        return self.dbm

    def ifconfig(self):
        return "10.0.0.2", "255.0.0.0", "10.0.0.1", "10.0.0.53"


STA_IF = 0
STAT_IDLE = 0
STAT_CONNECTING = 1
STAT_GOT_IP = 3
STAT_HANDSHAKE_TIMEOUT = 204
STAT_NO_AP_FOUND = 201
STAT_WRONG_PASSWORD = 202
STAT_CONNECT_FAIL = -1
countries = []


def country(code):
    countries.append(code)
