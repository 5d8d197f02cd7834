"""Small packages of Python that tests build on a host."""

from __future__ import annotations

import io
import zipfile

from tests.lab import Host


def wheel(host: Host, directory: str, name: str, version: str, requires: str = "") -> str:
    """Write a wheel with one module to a directory of a host; return its file name.

    :param requires: the name of a package that it depends on
    """
    content, info = io.BytesIO(), f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr(f"{name}.py", f"version = '{version}'\n")
        packed.writestr(f"{info}/METADATA", metadata + (f"Requires-Dist: {requires}\n" if requires else ""))
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{info}/RECORD", "")
    file = f"{name}-{version}-py3-none-any.whl"
    host.path(directory).mkdir(parents=True, exist_ok=True)
    host.path(f"{directory}/{file}").write_bytes(content.getvalue())
    return file
