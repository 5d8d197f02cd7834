"""Open what `ansible-vault` encrypted: files, and values in YAML.

The format is that of Ansible's documentation, "Ansible Vault payload format 1.1 - 1.2": a line with a header, then hex
digits of three lines of hex digits: a salt, an HMAC-SHA256 of the encrypted text, and the text, encrypted with AES-256
in CTR mode. PBKDF2 makes the keys from the password.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from functools import partial
from typing import NamedTuple

from statecfg.graph.opaque import Secret
from statecfg.playbook import secret_programs
from statecfg.playbook.secret_keys import DEFAULT, PROMPT, Opened, Ring, SecretFailure, VaultId

MARK = "$ANSIBLE_VAULT;"
ROUNDS = 10_000
HELP = "encrypt it with `ansible-vault encrypt`, or `ansible-vault encrypt_string` for a value"
NO_KEY = "name the password's file or program with --vault-id, or as vault_ids in statecfg.toml"


class Sealed(NamedTuple):
    """An encrypted text.

    :param label: the label of its password, "default" for none
    :param salt: for the keys
    :param digest: the HMAC of `data`
    :param data: the encrypted text
    """

    label: str
    salt: bytes
    digest: bytes
    data: bytes


def is_text(value: str) -> bool:
    """Return whether a value is an encrypted text, and not the path of a file."""
    return value.lstrip().startswith(MARK)


def parse(text: str) -> Sealed | SecretFailure:
    """Return the parts of an encrypted text. It needs no password."""
    header, *lines = text.strip().splitlines() or [""]
    name, *fields = header.strip().split(";")
    if f"{name};" != MARK or len(fields) < 2:
        return SecretFailure("is not encrypted by Ansible Vault", HELP)
    version, cipher, label = fields[0], fields[1], fields[2] if len(fields) > 2 else DEFAULT
    if version not in ("1.1", "1.2") or cipher != "AES256":
        return SecretFailure(
            f"has the unknown format `{version};{cipher}`", "encrypt it again with a current ansible-vault"
        )
    if not label.isprintable():  # the question for the password shows it
        return SecretFailure("is damaged: its label contains a control character", HELP)
    try:
        parts = [binascii.unhexlify(part) for part in binascii.unhexlify("".join("".join(lines).split())).split(b"\n")]
        salt, digest, data = parts
    except ValueError:  # `binascii.Error` is one
        return SecretFailure("is damaged: the lines after its header are not in the format of ansible-vault", HELP)
    return Sealed(label or DEFAULT, salt, digest, data)


def opened(ring: Ring, sealed: Sealed) -> Opened | SecretFailure:
    """Return the decrypted text. Passwords with the label of the text are tried first, then the others.

    The user is asked for the password if no other password opens the text, and none has its label.
    """
    tried, labels, cause = 0, set(), None
    for vault_id in sorted(ring.keys.vault_ids, key=lambda one: one.label != sealed.label):
        if vault_id.source == PROMPT and vault_id.label != sealed.label:
            continue  # a question for another vault's password would mislead
        password = ring.once(("password", vault_id), partial(_password, ring, vault_id))
        labels.add(vault_id.label)
        if isinstance(password, SecretFailure):
            cause = cause or password
            continue
        plain = _decrypted(sealed, password)
        if plain is not None:
            return plain
        tried += 1
    if sealed.label not in labels:
        password = ring.ask(_question(sealed.label))
        if isinstance(password, Secret):
            plain = _decrypted(sealed, password)
            return plain or SecretFailure("can't be opened: the password is wrong", "run the command again")
        cause = cause or (password._replace(help=NO_KEY) if not tried else None)
    if cause is not None:
        return SecretFailure(f"can't be opened: {cause.detail}", cause.help)
    which = "the vault password is wrong" if tried == 1 else f"none of the {tried} vault passwords is right"
    label = f" (its label is `{sealed.label}`)" if sealed.label != DEFAULT else ""
    return SecretFailure(f"can't be opened: {which}{label}", NO_KEY)


def _question(label: str) -> str:
    return "vault password" if label == DEFAULT else f"vault password for {label}"


def _password(ring: Ring, vault_id: VaultId) -> Secret | SecretFailure:
    if vault_id.source == PROMPT:
        answer = ring.ask(_question(vault_id.label))
        return answer if isinstance(answer, Secret) else answer._replace(help=answer.help or NO_KEY)
    return secret_programs.password(vault_id.source, vault_id.label, secret_programs.environment(ring.variables))


def _decrypted(sealed: Sealed, password: Secret) -> Opened | None:
    """Return the decrypted text; None if the password is wrong."""
    from cryptography.hazmat.primitives import padding
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    made = hashlib.pbkdf2_hmac("sha256", password._bare().encode("utf-8"), sealed.salt, ROUNDS, 80)
    if not hmac.compare_digest(hmac.digest(made[32:64], sealed.data, "sha256"), sealed.digest):
        return None
    decryptor = Cipher(algorithms.AES(made[:32]), modes.CTR(made[64:80])).decryptor()
    unpadder = padding.PKCS7(128).unpadder()
    padded = decryptor.update(sealed.data) + decryptor.finalize()
    return Opened(unpadder.update(padded) + unpadder.finalize())
