"""The first code that runs on a host: load the executor from its cache or from the controller, and start it.

The controller passes the text of this file as an argument of `python3 -I -S -c`. The host needs no other file.
"""

import gc
import json
import marshal
import os
import select
import stat
import struct
import sys
import time
import zlib
from importlib import import_module
from importlib.machinery import ModuleSpec

MAGIC = import_module("_frozen_importlib_external").MAGIC_NUMBER
WAIT = 60.0  # seconds to wait for more bytes, so that the process ends if the controller vanishes
OLD = 30 * 86400  # seconds after which an executor of another version is deleted
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

    Frame = Tuple[Dict[str, Any], bytes]

os.umask(0o022)
sink, source = os.dup(1), os.dup(0)
os.dup2(2, 1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
warnings: "List[str]" = []
gc.set_threshold(50000)  # new objects until the garbage collector starts; a small graph never needs it


def tell(data: bytes) -> None:
    """Send all of these bytes: a system may write only a part at a time."""
    while data:
        data = data[os.write(sink, data) :]


tell(b"statecfg-executor ")


def exactly(count: int) -> bytes:
    """Read exactly this many bytes; end the process if they don't arrive."""
    data = b""
    while len(data) < count:
        ready = select.select([source], [], [], WAIT)[0]
        piece = os.read(source, count - len(data)) if ready else b""
        if not piece:
            os._exit(97)
        data += piece
    return data


def receive() -> "Frame":
    """Return the next frame; see `wire`."""
    first, second, flags = struct.unpack(">IIB", exactly(9))
    if not 0 < first <= 4 << 20 or second > 4 << 20:
        os._exit(98)
    data = exactly(second if flags & 1 else first + second)
    if flags & 1:
        data = zlib.decompress(data)
    return json.loads(data[:first].decode("utf-8", "surrogatepass")), data[first:]


def cache(make: bool = False) -> "Optional[str]":
    """Return the directory of cached executors. If it is not safe to use, warn and return None.

    :param make: create it if it is missing. This must wait for the controller's first answer: until then, the run may
        still end without touching the host
    """
    chosen = os.environ.get("STATECFG_STATE_DIR", "")
    if chosen.startswith("/"):
        state_dir = chosen
    elif os.geteuid() == 0:
        state_dir = "/var/lib/statecfg"
    else:
        home = os.environ.get("HOME") or import_module("pwd").getpwuid(os.geteuid()).pw_dir
        state_dir = os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.join(home, ".local/state"), "statecfg")
    folder = os.path.join(state_dir, "cache")
    try:
        if make:
            os.makedirs(state_dir, 0o700, exist_ok=True)
            if not os.path.lexists(folder):
                os.mkdir(folder, 0o700)
        for path in (state_dir, folder):
            if not make and not os.path.lexists(path):
                break
            info = os.lstat(path)
            if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
                file_type = "a directory" if stat.S_ISDIR(info.st_mode) else "not a directory"
                whose = f"{file_type} of owner {info.st_uid} and mode {info.st_mode & 4095:04o}"
                cure = "remove it, or make it a directory that only this login can write to"
                warnings.append(f"statecfg does not cache the executor in {path}, which is {whose}: {cure}")
                return None
        return folder
    except OSError as problem:
        warnings.append(f"statecfg can't cache the executor on this host: {problem}")
        return None


def load(path: str) -> bytes:
    """Return a file's content, b"" if it can't be read; don't follow links and don't wait for pipes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
    except OSError:
        return b""


def keep(folder: "Optional[str]", name: str, data: bytes) -> None:
    """Cache data for the next run in one step, and delete old executors of other versions.

    This is `durable.replace` once more, because the bootstrap runs before the host has any other module.
    """
    if folder is None or cache(make=True) is None:
        return
    trial = os.path.join(folder, f"{name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(trial, os.path.join(folder, name))
        for other in os.listdir(folder):
            path = os.path.join(folder, other)
            if other[:64] != name[:64] and time.time() - os.lstat(path).st_mtime > OLD:
                os.unlink(path)
    except OSError as problem:
        warnings.append(f"statecfg can't cache the executor on this host: {problem}")
        if os.path.lexists(trial):
            os.unlink(trial)


def ask(sha: str, frames: "List[Frame]") -> "Iterator[bytes]":
    """Request a part of the executor from the controller; yield its pieces, and append other frames to `frames`."""
    text = json.dumps({"type": "need", "bundle": sha}).encode()
    tell(struct.pack(">IIB", len(text), 0, 0) + text)
    last = False
    while not last:
        header, body = receive()
        if header["type"] == "bundle":
            yield body
            last = header["last"]
        elif header["type"] != "beat":
            frames.append((header, body))


def inflated(sha: str, packed: bytes) -> "Optional[bytes]":
    """Return the text of a part of the executor; None if it is missing or damaged."""
    from hashlib import sha256

    stream = zlib.decompressobj()
    try:
        text = stream.decompress(packed)
    except zlib.error:
        return None
    return text if stream.eof and not stream.unused_data and sha256(text).hexdigest() == sha else None


def fetch(sha: str, folder: "Optional[str]", pieces: "Callable[[str], Iterable[bytes]]") -> bytes:
    """Return the text of a part of the executor; request it from the controller if no sound one is cached."""
    kept = load(os.path.join(folder or "/nonexistent", sha))
    text = inflated(sha, kept)
    if text is not None:
        return text
    if kept:
        warnings.append("the cached executor on this host was damaged; statecfg sent it again")
    bundle = b"".join(pieces(sha))
    text = inflated(sha, bundle)
    if text is None:
        sys.stderr.write("the executor arrived damaged\n")
        sys.exit(95)
    keep(folder, sha, bundle)
    return text


def default_file(name: str, package: int) -> str:
    """Return the file name in tracebacks that a part does not have to contain."""
    path = name.replace(".", "/").replace("statecfg/resources", "resources")
    return path + ("/__init__.py" if package else ".py")


def unpack(sha: str, pieces: "Callable[[str], Iterable[bytes]]") -> "Dict[str, Any]":
    """Return the modules of a part of the executor: name → whether it is a package, and its code as bytes.

    Both forms are cached: as sent, and compiled. A start reads only the compiled one, unless it is missing or damaged.
    The code of a module is loaded when it is imported.

    :param sha: the digest of the part
    :param pieces: requests a part from the controller, and yields its pieces
    """
    folder = cache()
    tag = f"{sha}.{sys.implementation.cache_tag}"
    packed = load(os.path.join(folder or "/nonexistent", tag))
    payload = memoryview(packed)[4:]
    # Bytecode is valid for one version of Python only, so the checksum includes its magic number.
    start = zlib.crc32(MAGIC + sha.encode())
    if len(packed) < 5 or struct.pack(">I", zlib.crc32(payload, start)) != packed[:4]:
        head, *sources = fetch(sha, folder, pieces).decode().split("\0")
        modules = {}
        for (name, about), source in zip(json.loads(head).items(), sources):
            package, filename = about if isinstance(about, list) else (bool(about), default_file(name, about))
            modules[name] = (package, marshal.dumps(compile(source, filename, "exec", dont_inherit=True, optimize=0)))
        payload = memoryview(marshal.dumps(modules))
        keep(folder, tag, struct.pack(">I", zlib.crc32(payload, start)) + payload)
    code: "Dict[str, Any]" = marshal.loads(payload)  # noqa: S302  # its checksum was checked
    return code


class Finder:
    """Imports modules from the executor."""

    modules: "Dict[str, Any]" = {}

    @classmethod
    def find_spec(cls, name: str, path: "Any" = None, target: "Any" = None) -> "Optional[ModuleSpec]":
        """Return the import specification of a module of the executor, None for others."""
        loader: "Any" = cls
        return ModuleSpec(name, loader, is_package=cls.modules[name][0]) if name in cls.modules else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Return None, so that Python creates the module."""

    @classmethod
    def get_code(cls, name: str) -> "Any":
        """Return a module's code."""
        code = cls.modules[name][1]
        return marshal.loads(code) if isinstance(code, bytes) else code  # noqa: S302  # its checksum was checked

    @classmethod
    def exec_module(cls, module: "Any") -> None:
        """Run a module's code."""
        code = cls.get_code(module.__name__)
        module.__file__ = code.co_filename
        exec(code, module.__dict__)  # noqa: S102  # what the controller sent


def begin() -> None:
    """Return the nonce to the controller, and start the executor."""
    hello = receive()[0]
    tell(hello["nonce"].encode() + b"\n")
    frames: "List[Frame]" = []
    Finder.modules = unpack(hello["bundle"], lambda sha: ask(sha, frames))
    finder: "Any" = Finder
    sys.meta_path.insert(0, finder)
    hello.update(warnings=warnings, modules=Finder.modules, unpack=unpack)
    import_module("statecfg.remote.session").main(source, sink, hello, frames)
    sys.stderr.flush()
    os._exit(0)  # without it, Python deletes each object first, which takes 2 ms


begin()
