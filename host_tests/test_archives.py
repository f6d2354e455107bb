"""Archives are unpacked by every Python that is supported, Debian 12's 3.11.2 included."""

import io
import tarfile

import pytest

from tools.archives import unpack

NAMES = ["a.txt", "below/b.txt", "c.txt"]


@pytest.fixture(params=["a Python with filters", "3.11.2"])
def archive(request, monkeypatch):
    """An archive of three files; before 3.11.4 `extractall` took no filter."""
    if request.param == "3.11.2":
        extract = tarfile.TarFile.extractall

        def extractall(self, path=".", members=None, *, numeric_owner=False):
            extract(self, path, members, numeric_owner=numeric_owner)

        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as made:
        for name in NAMES:
            about = tarfile.TarInfo(name)
            about.size = len(name)
            made.addfile(about, io.BytesIO(name.encode()))
    data.seek(0)
    with tarfile.open(fileobj=data) as opened:
        yield opened


def test_archive_is_unpacked_whole_or_some_of_it(archive, tmp_path):
    unpack(archive, tmp_path / "all")
    assert [(tmp_path / "all" / name).read_text() for name in NAMES] == NAMES
    unpack(archive, tmp_path / "some", [archive.getmember("c.txt")])
    assert [one.name for one in (tmp_path / "some").iterdir()] == ["c.txt"]
