"""The time in two halves: right over the borders of both."""

import pytest

from walltime import WallTime


@pytest.mark.parametrize("uptime_s", [0, 1, 0xFFFF, 0x10000, 0x10001, 5 * 86400, 1 << 29])
@pytest.mark.parametrize("seconds", [1_800_000_000, 0x6B49FFFF, 0x6B4A0000, 0x90000000])
def test_walltime_counts_on_with_the_uptime(seconds, uptime_s):
    time = WallTime()
    assert not time.is_known
    time.read(7)
    assert (time.high, time.low) == (0, 0)
    time.set(seconds, 100)
    assert time.is_known
    time.read(uptime_s)
    assert time.high << 16 | time.low == seconds - 100 + uptime_s
