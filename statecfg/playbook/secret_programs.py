"""Run the programs that print secrets: sops, password managers, and programs that print a vault's password.

A program gets no input. It can ask the user on the terminal. No secret is in its arguments. It gets the environment of
statecfg without the options of statecfg in `STATECFG_…`, and without the variables that are secrets themselves. Only
sops gets these, because they may be its own keys.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from statecfg.graph import opaque
from statecfg.graph.opaque import Secret
from statecfg.playbook import trust, user_code
from statecfg.playbook.secret_keys import Opened, SecretFailure

DEADLINE = 300.0  # seconds; the user may have to type a passphrase, or to touch a hardware key
LARGEST = 1 << 20  # bytes of output
LONGEST = 300  # characters of a program's message
OURS = "STATECFG_"  # environment variables that set our options; one may contain a secret


def installed(program: str, directory: str) -> bool:
    """Return whether a program exists.

    :param program: a name that is searched in PATH, or a path
    :param directory: the directory of a relative path
    """
    if "/" in program:
        return os.access(os.path.join(directory, program), os.X_OK)
    return shutil.which(program) is not None


def environment(secret: Collection[str] = ()) -> dict[str, str]:
    """Return the environment of a program.

    :param secret: names of environment variables that are secrets
    """
    return {name: value for name, value in os.environ.items() if name not in secret and not name.startswith(OURS)}


def output(argv: Sequence[str], directory: str, environ: Mapping[str, str]) -> Opened | SecretFailure:
    """Run a program and return what it prints.

    :param argv: the program and its arguments
    :param directory: the working directory
    :param environ: its environment
    """
    name = argv[0]
    if not installed(name, directory):
        return SecretFailure(
            f"the program `{name}` is not installed", f"install {os.path.basename(name)}, or correct the name"
        )
    try:
        with user_code.waiting():
            ran = subprocess.run(
                argv, cwd=directory, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE
            )
    except subprocess.TimeoutExpired:
        return SecretFailure(
            f"`{name}` did not end within {DEADLINE:g} seconds", "run it by hand to see what it waits for"
        )
    except (OSError, ValueError) as error:  # ValueError: an argument contains NUL
        reason = error.strerror if isinstance(error, OSError) else "an argument contains a NUL character"
        return SecretFailure(f"`{name}` can't be started: {reason}", "check the program")
    if ran.returncode != 0:
        ended = f"signal {-ran.returncode}" if ran.returncode < 0 else f"exit status {ran.returncode}"
        message = _message(ran.stderr, ran.stdout)
        return SecretFailure(f"`{name}` failed with {ended}{message}", "run it by hand to see more")
    if len(ran.stdout) > LARGEST:
        return SecretFailure(f"`{name}` printed more than {LARGEST:,} bytes", "let it print only the secret")
    return Opened(ran.stdout)


def _message(stderr: bytes, stdout: bytes) -> str:
    """Return what a failed program says about the cause, without secrets and without what it printed to stdout."""
    text = stderr.decode("utf-8", "replace")
    printed = stdout.decode("utf-8", "replace")
    for part in sorted({*map(str.strip, printed.splitlines()), *printed.split()}, key=len, reverse=True):
        if len(part) >= opaque.SHORTEST:
            text = text.replace(part, "…")
    words = " ".join(opaque.mask_secrets(text).replace("|", " ").split())
    return f": {words if len(words) <= LONGEST else words[: LONGEST - 1] + '…'}" if words else ""


def sops(path: str, as_json: bool) -> Opened | SecretFailure:
    """Return what `sops` decrypts.

    :param path: the absolute path of a file
    :param as_json: convert a file with keys, such as YAML, to JSON
    """
    options = ["--output-type", "json"] if as_json else []
    found = output(["sops", "--decrypt", *options, path], os.path.dirname(path), environment())
    if isinstance(found, SecretFailure) and found.detail == "the program `sops` is not installed":
        return found._replace(help="install sops: https://getsops.io")
    return found


def password(path: str, label: str, environ: Mapping[str, str]) -> Secret | SecretFailure:
    """Return the password in a file, or the one that a program prints.

    As in Ansible, an executable file is a program, and one whose name ends with `-client` gets the label.

    :param path: the absolute path
    :param label: the label of the password
    :param environ: the environment of the program
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return SecretFailure(
            f"{path} can't be read: {error.strerror}", "check --vault-id or vault_ids in statecfg.toml"
        )
    if not stat.S_ISREG(mode):
        return SecretFailure(
            f"{path} is not a regular file", "write the path of a file with the password, or of a program"
        )
    if mode & 0o111:
        return _printed(path, label, environ)
    if mode & 0o004:
        return SecretFailure(f"{path} can be read by everyone (mode {stat.S_IMODE(mode):04o})", f"chmod 0600 {path}")
    try:
        with open(path, "rb") as stream:
            found = Opened(stream.read(LARGEST + 1))
    except OSError as error:
        return SecretFailure(f"{path} can't be read: {error.strerror}", "check its permissions")
    if len(found.data) > LARGEST:
        return SecretFailure(f"{path} is larger than {LARGEST:,} bytes", "write only the password into it")
    return _as_password(Opened(found.data.strip()), path, "is empty")


def _printed(path: str, label: str, environ: Mapping[str, str]) -> Secret | SecretFailure:
    untrusted = trust.others_could_change(Path(path))
    if untrusted is not None:
        return SecretFailure(untrusted.detail, untrusted.help)
    client = os.path.splitext(os.path.basename(path))[0].endswith("-client")
    found = output([path, *(["--vault-id", label] if client else [])], os.path.dirname(path), environ)
    if isinstance(found, SecretFailure):
        return found
    return _as_password(Opened(found.data.strip(b"\r\n")), path, "printed no password")


def _as_password(found: Opened, path: str, empty: str) -> Secret | SecretFailure:
    """Return a password, or a cause if there is none.

    :param empty: says that there is none
    """
    if not found.data:
        return SecretFailure(f"{path} {empty}", "check it")
    try:
        return Secret("password", found.data.decode("utf-8"))
    except UnicodeDecodeError:
        return SecretFailure(
            f"the password in {path} is not UTF-8 text", "use a password of letters that UTF-8 can encode"
        )
