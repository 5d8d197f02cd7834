"""Certificates of authorities that the host trusts."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Content, LocalPath, Name, NodeOptions, node_type
from statecfg.remote.graph.wrong_values import PublicSecret
from statecfg.resources.shared import drop_in_texts, file_sources, files
from statecfg.resources.tls import tls_rules, trusted_authorities

DIRECTORY = "/usr/local/share/ca-certificates/"
VALIDATE = ["openssl", "x509", "-noout", "-in", "{}"]


@node_type
def ca_certificate(
    name: Name,
    *,
    content: Content | None = None,
    source: LocalPath | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Let the host trust your own certificate authority, on Debian and its relatives.

    The certificate is in a file in /usr/local/share/ca-certificates. ``update-ca-certificates`` of the package
    ca-certificates adds it to the certificates that the programs of the host trust. The node acts if the file differs,
    or if the bundle of trusted certificates does not contain the certificate.

    Undo: statecfg restores the file that had this name before, or removes the certificate, and updates the bundle.

    :param name: the name of the file without ``.crt``: letters, digits, `_` and `-`
    :param content: the certificate in PEM
    :param source: a local file with the certificate, next to the playbook or in the project's ``files/``
    :param absent: there must be no file of this name

    In YAML::

        - ca_certificate: example
          source: example-ca.pem

    In Python::

        ca_certificate("example", source="example-ca.pem", requires=[package("ca-certificates")])
    """


@ca_certificate.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a missing or invalid certificate, and attributes that contradict each other."""
    drop_in_texts.check_name(attrs["name"])
    given = sum(attrs.get(name) is not None for name in ("content", "source"))
    if attrs.get("absent") and given:
        raise ValueError("absent can't be combined with content or source")
    if not attrs.get("absent") and given != 1:
        raise ValueError("either content or source is required unless absent is true")
    if hasattr(attrs.get("content"), "reveal"):
        raise PublicSecret("a certificate is public: write it as it is", "content")
    if isinstance(attrs.get("content"), str):
        tls_rules.fingerprint(attrs["content"].encode())


@ca_certificate.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Read the certificate, and send its content and its fingerprint."""
    path = f"{DIRECTORY}{node.attrs['name']}.crt"
    if node.attrs.get("absent"):
        return drop_in_texts.sent(node, path, None)
    content = file_sources.with_content(node, context).attrs["content"]
    fingerprint = tls_rules.fingerprint(content.read())
    return drop_in_texts.sent(node, path, content, source=None, fingerprint=fingerprint, validate=VALIDATE)


ca_certificate.identity(["path:" + DIRECTORY + "{name}.crt"])
ca_certificate.owns(["part:path:" + trusted_authorities.BUNDLE, "part:path:/etc/ssl/certs/{name}.pem"])
ca_certificate.blobs(files.blobs)
ca_certificate.remember(files.remember)
ca_certificate.implemented_by(trusted_authorities)
