"""In untrusted archives, bad members are skipped, and decompression bombs are refused."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from hta_sql.errors import TraceFormatError, TraceNotFoundError
from hta_sql.ingestion.discover import discover
from hta_sql.traces import source
from hta_sql.traces.peek import peek

MEMBERS: dict[str, tuple[bytes, str]] = {
    "pipe": (tarfile.FIFOTYPE, ""),
    "device": (tarfile.CHRTYPE, ""),
    "link out": (tarfile.SYMTYPE, "../../../etc/passwd"),
    "absolute link": (tarfile.SYMTYPE, "/etc/passwd"),
    "hard link out": (tarfile.LNKTYPE, "/etc/passwd"),
    "link to itself": (tarfile.SYMTYPE, "rank1.json"),
}


@pytest.fixture
def good(trace_path: Callable[[str], Path]) -> bytes:
    """Return the trace of rank 0."""
    return trace_path("two_ranks_0.json").read_bytes()


@pytest.mark.parametrize(("kind", "target"), MEMBERS.values(), ids=MEMBERS)
def test_members_of_a_tar_that_are_no_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, good: bytes, kind: bytes, target: str
) -> None:
    """Members of a tar that are not regular files are skipped, and other members are read."""
    path = tmp_path / "job.tar"
    with tarfile.open(path, "w") as archive:
        plain, special = tarfile.TarInfo("rank0.json"), tarfile.TarInfo("rank1.json")
        plain.size, special.type, special.linkname = len(good), kind, target
        archive.addfile(plain, io.BytesIO(good))
        archive.addfile(special)
    assert [file.rank for file in discover(str(path))] == [0]
    (warning,) = [text for text in caplog.messages if text.startswith("Skipped")]
    assert "rank1.json" in warning
    assert "the archive member is not a regular file" in warning


def test_an_absolute_member_of_a_zip(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, good: bytes
) -> None:
    """A zip member with an absolute path is skipped, and other members are read."""
    path = tmp_path / "job.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rank0.json", good)
        archive.writestr("/etc/rank1.json", good)
    assert [file.rank for file in discover(str(path))] == [0]
    assert any("an absolute path" in text for text in caplog.messages)


def test_a_damaged_member_of_a_zip(tmp_path: Path) -> None:
    """The error for a damaged zip member includes the cause."""
    path = tmp_path / "job.zip"
    event = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1}'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rank0.json", b'{"traceEvents": [' + event + b"]}")
    path.write_bytes(path.read_bytes().replace(b"aten::mm", b"aten::mv"))
    with pytest.raises(TraceFormatError, match="is empty: the archive is damaged: Bad CRC-32"):
        discover(str(path))


def test_a_packed_member_that_breaks_off(tmp_path: Path) -> None:
    """A damaged gzip file inside a zip is read as far as the same file outside of a zip."""
    path = tmp_path / "job.zip"
    event = b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1},'
    packed = gzip.compress(b'{"traceEvents": [' + event * 200)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rank0.json.gz", packed[:-40] + b"\xff" * 40)
    with source.open_trace(f"zip://rank0.json.gz::{path}") as inside:
        in_archive = source.whole_text(inside)
    (tmp_path / "plain.gz").write_bytes(packed[:-40] + b"\xff" * 40)
    with source.open_trace(str(tmp_path / "plain.gz")) as alone:
        assert source.whole_text(alone) == in_archive != b""


START = b'{"traceEvents": ['
BOMB_BYTES = 24 << 20
ALLOWED_BYTES = 4 << 20


def pack_zst(path: Path, text: bytes) -> str:
    """Write bytes as a zstd file, and return its path."""
    path.with_suffix(".zst").write_bytes(zstandard.compress(text))
    return str(path.with_suffix(".zst"))


def pack_zip(path: Path, text: bytes) -> str:
    """Write bytes as the only member of a zip, and return the member's URL."""
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rank0.json", text)
    return f"zip://rank0.json::{path.with_suffix('.zip')}"


def pack_thrice(path: Path, text: bytes) -> str:
    """Compress bytes with gzip three times, and return the file path."""
    path.write_bytes(gzip.compress(gzip.compress(gzip.compress(text))))
    return str(path)


def pack_members(path: Path, text: bytes) -> str:
    """Write a gzip file that unpacks to thousands of empty gzip members."""
    empty = gzip.compress(b"")
    path.write_bytes(gzip.compress(empty * (len(text) // len(empty))))
    return str(path)


@pytest.mark.parametrize("pack", [pack_zst, pack_zip, pack_thrice, pack_members])
@pytest.mark.parametrize("start", [START, b'{"a": "'], ids=["events", "no events"])
def test_a_bomb_is_refused_where_it_is_looked_at(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pack: Callable[[Path, bytes], str],
    start: bytes,
) -> None:
    """Format detection refuses a decompression bomb instead of unpacking it."""
    monkeypatch.setattr(source, "ALWAYS_ALLOWED_BYTES", ALLOWED_BYTES)
    path = pack(tmp_path / "bomb.gz", start + b" " * BOMB_BYTES)
    with pytest.raises(TraceFormatError, match=r"bomb.* unpacks to more than \d+ MB"):
        peek(path)


def pad(archive: tarfile.TarFile) -> None:
    """Add a large member that consists of zero bytes."""
    member = tarfile.TarInfo("notes.txt")
    member.size = BOMB_BYTES
    archive.addfile(member, io.BytesIO(bytes(BOMB_BYTES)))


def crowd(archive: tarfile.TarFile, count: int = 400) -> None:
    """Add many empty members, whose headers unpack to many bytes."""
    for number in range(count):
        archive.addfile(tarfile.TarInfo(f"rank{number}.json"))


@pytest.mark.parametrize("fill", [pad, crowd])
def test_a_bomb_is_refused_where_it_is_listed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    good: bytes,
    fill: Callable[[tarfile.TarFile], None],
) -> None:
    """A compressed tar that is a bomb is refused when its members are listed."""
    monkeypatch.setattr(source, "ALWAYS_ALLOWED_BYTES", ALLOWED_BYTES)
    path = tmp_path / "bomb.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        fill(archive)
        member = tarfile.TarInfo("rank0.json")
        member.size = len(good)
        archive.addfile(member, io.BytesIO(good))
    refused = pytest.raises(TraceFormatError, match=r"bomb.* unpacks to more than \d+ MB")
    for name in (str(path), f"tar://rank0.json::{path}"):
        with refused:
            discover(name)
    with refused:
        source.file_bytes(f"tar://rank0.json::{path}")


def test_many_members_of_a_tar_are_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The members of a tar are listed once in total, not once per member."""
    listed: list[str] = []
    with tarfile.open(tmp_path / "many.tar", "w") as archive:
        crowd(archive, 20)
    members = tarfile.TarFile.__iter__

    def counted(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        if not getattr(archive, "_loaded"):  # noqa: B009 - is not in the types
            listed.append("once")
        return members(archive)

    monkeypatch.setattr(tarfile.TarFile, "__iter__", counted)
    with pytest.raises(TraceNotFoundError, match="None of the 20 files"):
        discover(str(tmp_path / "many.tar"))
    assert listed == ["once"]


def test_a_packed_tar_by_its_content(tmp_path: Path, good: bytes) -> None:
    """A compressed tar is detected by its content, regardless of its suffix."""
    for name in ("job.tgz", "job.tar.gz", "job.tar"):
        with tarfile.open(tmp_path / name, "w:gz") as archive:
            for rank in range(2):
                member = tarfile.TarInfo(f"rank{rank}.json")
                member.size = len(good)
                archive.addfile(
                    member, io.BytesIO(good.replace(b'"rank": 0', b'"rank": %d' % rank))
                )
        assert [file.rank for file in discover(str(tmp_path / name))] == [0, 1]
