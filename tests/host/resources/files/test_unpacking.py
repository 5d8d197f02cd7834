"""Archives that would fill memory or disk, or write elsewhere, are refused within 2 seconds and 100 MB."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

SECONDS, MEMORY = 2.0, 100  # CPU seconds and MB
LOOPS = 45  # on a busy machine, processors share caches: 2 seconds on an idle one are about 30 loops of the benchmarks
# Prints the refusal, the CPU seconds and the memory in MB of reading an archive, and the CPU seconds of a loop.
READ = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from bench.figures import loop
from statecfg.resources.files import archives
from statecfg.resources.files.unpacking import Archive
said, before, start = "", loop(), time.process_time()
try:
    archives.entries(Archive(lambda: open(sys.argv[2], "rb"), int(sys.argv[3])))
except ValueError as problem:
    said = str(problem)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
seconds = time.process_time() - start
print(json.dumps([said, seconds, int(peak) // 1024, max(before, loop())]))
"""
BLOCK = bytes(512)
ZEROS = bytes(16 << 20)

Header = dict[str, Any]


def header(name: str, **fields: Any) -> bytes:
    """Return the header of an entry."""
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def tar(*entries: bytes | tuple[str, Header] | tuple[str, Header, bytes]) -> bytes:
    """Return a tar file: raw bytes, or name, fields of the header, and content."""
    found = b""
    for entry in entries:
        if isinstance(entry, bytes):
            found += entry
            continue
        name, fields, *content = entry
        data = content[0] if content else b""
        found += header(name, **{"size": len(data), **fields}) + data + bytes(-len(data) % 512)
    return found + 2 * BLOCK


def link(name: str, target: str) -> tuple[str, Header]:
    return name, {"type": tarfile.SYMTYPE, "linkname": target}


def hard(name: str, target: str) -> tuple[str, Header]:
    return name, {"type": tarfile.LNKTYPE, "linkname": target}


def zipped(*entries: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED, mode: int = 0o100644) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            info.compress_type, info.external_attr = method, mode << 16
            file.writestr(info, data)
    return stream.getvalue()


def zeros(compress: Callable[[bytes], bytes], start: bytes, blocks: int) -> bytes:
    """Return a bomb: a beginning, and after it zeros, 16 MiB in each part."""
    return compress(start) + compress(ZEROS) * blocks


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 1)


def many(count: int, settings: bytes = b"") -> bytes:
    """Return a tar file with many empty files of one name."""
    return (settings + header("f")) * count


def pax(key: str, value: str, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """Return a header with one setting."""
    body = f" {key}={value}\n".encode("utf-8", "surrogateescape")
    size = len(body) + len(str(len(body) + 7))
    body = str(size).encode() + body
    return header("pax", type=kind, size=len(body)) + body + bytes(-len(body) % 512)


def lying(data: bytes, size: int) -> bytes:
    """Return a zip whose directory tells another size of its first file."""
    at = data.rindex(b"PK\x01\x02")
    return data[: at + 24] + struct.pack("<I", size) + data[at + 28 :]


def overlapping(count: int) -> bytes:
    """Return a zip in which many entries have the same 16 MiB."""
    one = zipped(("f", ZEROS))
    at = one.rindex(b"PK\x01\x02")
    end = one.rindex(b"PK\x05\x06")
    entry = one[at:end]
    listed = entry * count
    told = min(count, 0xFFFF)
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, told, told, len(listed), at, 0)
    return one[:at] + listed + tail


def chained(count: int) -> bytes:
    """Return a tar file with links that lead through links."""
    return tar(*(link(f"l{n}", "/".join([f"l{n + 1}"] * 20)) for n in range(count)), link(f"l{count}", "."))


def big_dictionary() -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    return lzma.compress(tar(("f", {}, b"x")), filters=filters)


MANY_BYTES = 1 << 40
BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: zeros(packed, header("f", size=64 << 24), 64),
    "bzip2": lambda: zeros(bz2.compress, header("f", size=64 << 24), 64),
    "xz": lambda: zeros(lzma.compress, header("f", size=64 << 24), 64),
    "many files of zeros": lambda: packed(header("f", size=16 << 20) + ZEROS) * 64,
    "a size of a terabyte": lambda: tar(("f", {"size": MANY_BYTES}, b"x")),
    "a long name": lambda: zeros(lzma.compress, header("n", type=tarfile.GNUTYPE_LONGNAME, size=64 << 24), 64),
    "a long target": lambda: zeros(lzma.compress, header("n", type=tarfile.GNUTYPE_LONGLINK, size=64 << 24), 64),
    "a large setting": lambda: zeros(lzma.compress, header("n", type=tarfile.XHDTYPE, size=64 << 24), 64),
    "a negative size": lambda: zeros(lzma.compress, header("n", type=tarfile.XHDTYPE, size=-512), 64),
    "many settings": lambda: packed(tar(pax("a", "b" * 400_000, tarfile.XGLTYPE), many(60_000))),
    "many entries": lambda: packed(many(60_000)),
    "many entries with settings": lambda: packed(many(60_000, pax("path", "f"))),
    "many long names": lambda: packed((pax("path", "d/" * 1900) + header("f")) * 20_000),
    "much memory of xz": big_dictionary,
    "many parts": lambda: packed(header("f", size=1 << 20)) + packed(b"") * 200_000,
    "many hard links": lambda: packed(
        tar(("f", {}, bytes(1 << 20)), header("h", type=tarfile.LNKTYPE, linkname="f") * 40_000)
    ),
    "links through links": lambda: chained(200),
    "a sparse file": lambda: tar(pax("GNU.sparse.major", "1"), pax("GNU.sparse.realsize", str(MANY_BYTES))),
    "a long number in the settings": lambda: header("pax", type=tarfile.XHDTYPE, size=900_000) + b"9" * 1_000_000,
    "deep directories": lambda: packed(tar(*((f"{n}/{'a/' * 120}f", {}, b"") for n in range(600)))),
    "many compressed parts": lambda: gzip.compress(b"") * 1_000_000,
    "zip": lambda: zipped(("f", ZEROS), ("g", bytes(256 << 20))),
    "zip with entries that overlap": lambda: overlapping(400),
    "zip that tells a small size": lambda: lying(zipped(("f", ZEROS)), 10),
    "zip that tells a large size": lambda: lying(zipped(("f", b"x")), 0xFFFFFFF0),
    "zip with many entries": lambda: overlapping(70_000),
    "zip with xz": lambda: zipped(("f", ZEROS), method=zipfile.ZIP_LZMA),
    "zip with bzip2": lambda: zipped(("f", ZEROS), method=zipfile.ZIP_BZIP2),
    "zip with a long link": lambda: zipped(("l", bytes(1 << 20)), mode=0o120777),
}
ESCAPES: dict[str, Callable[[], bytes]] = {
    "a link through links": lambda: tar(link("s", "."), link("t", "s/s/s/../../../..")),
    "a link through links that come later": lambda: tar(link("t", "s/s/s/../../.."), link("s", ".")),
    "a link through a link to a directory": lambda: tar(
        ("a/b", {"type": tarfile.DIRTYPE}), link("a/b/up", "../.."), link("t", "a/b/up/..")
    ),
    "a file behind a link": lambda: tar(link("s", "."), ("s/f", {}, b"x")),
    "a file behind a link that is a directory before": lambda: tar(
        ("s", {"type": tarfile.DIRTYPE}), ("s/f", {}, b"x"), link("s", "..")
    ),
    "an absolute name": lambda: tar(("/etc/f", {}, b"x")),
    "a name with ..": lambda: tar(("a/../../f", {}, b"x")),
    "an absolute link": lambda: tar(link("l", "/etc")),
    "a link to ..": lambda: tar(link("a/l", "../..")),
    "a hard link to another place": lambda: tar(hard("l", "/etc/shadow")),
    "a hard link to a link": lambda: tar(link("l", "f"), hard("h", "l")),
    "a hard link to itself": lambda: tar(hard("h", "h")),
    "a device": lambda: tar(("d", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})),
    "a pipe": lambda: tar(("p", {"type": tarfile.FIFOTYPE})),
    "a name with a null byte": lambda: tar(pax("path", "a\0/../b"), header("f")),
    "a name of 300 characters": lambda: tar(pax("path", "n" * 300), header("f")),
    "a name that is not UTF-8": lambda: tar((b"\xff".decode("utf-8", "surrogateescape"), {})),
    "links in a circle": lambda: tar(link("a", "b/x"), link("b", "a/x")),
    "zip with an absolute name": lambda: zipped(("/etc/f", b"x")),
    "zip with a name with ..": lambda: zipped(("../f", b"x")),
    "zip with a link out": lambda: zipped(("l", b"../f"), mode=0o120777),
}


@pytest.mark.parametrize("name", [*BOMBS, *ESCAPES])
def test_an_unsafe_archive_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes({**BOMBS, **ESCAPES}[name]())
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", READ, str(ROOT), str(path), "0"], capture_output=True, text=True, check=True
    )
    said, seconds, memory, loop = json.loads(done.stdout)
    assert said
    assert (seconds < max(SECONDS, LOOPS * loop), memory < MEMORY) == (True, True), f"{said}: {seconds} s, {memory} MB"
