"""The baseline for bench/hosts.py: read and check 100 files on each host with only paramiko and a remote Python.

python bench/bare_paramiko.py KNOWN_HOSTS IDENTITY DIRECTORY ADDRESS[:PORT] ...
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

import paramiko

PROGRAM = """
import json, os, sys, hashlib
found = {}
folder = sys.argv[1]
for name in sorted(os.listdir(folder)):
    path = folder + "/" + name
    info = os.lstat(path)
    with open(path, "rb") as stream:
        found[name] = [info.st_mode, info.st_uid, info.st_gid, hashlib.sha256(stream.read()).hexdigest()]
json.dump(found, sys.stdout)
"""


def ask(endpoint: str, known: paramiko.HostKeys, key: paramiko.PKey, folder: str) -> int:
    """Return the number of files with the right content on a host."""
    address, _, port = endpoint.partition(":")
    raw = socket.create_connection((address, int(port or 22)), timeout=10)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = paramiko.Transport(raw)
    transport.start_client(timeout=10)
    name = address if not port or port == "22" else f"[{address}]:{port}"
    if not known.check(name, transport.get_remote_server_key()):
        raise SystemExit(f"the key of {name} is not known")
    transport.auth_publickey("root", key)
    channel = transport.open_session()
    channel.exec_command(f"exec python3 -I -S -c '{PROGRAM}' {folder}")
    text = b""
    while piece := channel.recv(65536):
        text += piece
    transport.close()
    wanted = {f"f{number}": hashlib.sha256(f"hello {number}\n".encode()).hexdigest() for number in range(100)}
    return sum(found[3] == wanted[name] for name, found in json.loads(text).items() if name in wanted)


def main() -> None:
    known_hosts, identity, folder, *endpoints = sys.argv[1:]
    known = paramiko.HostKeys(known_hosts)
    key = paramiko.Ed25519Key.from_private_key_file(identity)
    with ThreadPoolExecutor(max_workers=32) as pool:
        print(sum(pool.map(lambda endpoint: ask(endpoint, known, key, folder), endpoints)), "files as they should be")


if __name__ == "__main__":
    main()
