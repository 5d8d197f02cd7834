"""Certificates for TLS."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Attrs, Mode, NodeOptions, Owner, OwnerGroup, PublicLine, node_type
from statecfg.resources.shared import files, paths
from statecfg.resources.tls import tls, tls_rules


@node_type
def tls_certificate(
    path: AbsolutePath,
    *,
    key: AbsolutePath | None = None,
    names: list[PublicLine] | None = None,
    common_name: PublicLine | None = None,
    days: int = 365,
    renew_before: int = 30,
    authority: AbsolutePath | None = None,
    authority_key: AbsolutePath | None = None,
    is_authority: bool = False,
    mode: Mode = "0644",
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a certificate that the host's openssl issues: signed with its own key, or by an authority on the host.

    An apply issues a new certificate if the present one is missing, belongs to another key, has another subject, issuer
    or other names, or expires within `renew_before` days. The plan says why. statecfg renews a certificate only when it
    runs, so apply the playbook more often than that. The host needs OpenSSL 3.

    Undo: statecfg restores the file that was there before, or removes the certificate.

    :param path: the path of the certificate in PEM
    :param key: the path of its private key on the host (see [tls_key](#tls_key))
    :param names: the names and addresses of the server, such as ``shop.example.org``, ``*.example.org``, ``192.0.2.1``
    :param common_name: the common name of the subject; default: the first of `names`
    :param days: how long a new certificate is valid
    :param renew_before: renew it if it expires within this number of days
    :param authority: the path of the certificate of the authority that signs it; default: its own key signs it
    :param authority_key: the path of the private key of that authority
    :param is_authority: whether the certificate belongs to an authority that can sign others
    :param mode: permission bits as an octal string
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param absent: there must be no file at the path

    In YAML::

        - tls_certificate: /etc/ssl/certs/shop.pem
          key: /etc/ssl/private/shop.key
          names: [shop.example.org, 192.0.2.1]

    In Python::

        tls_certificate("/etc/ssl/ca.pem", key="/etc/ssl/private/ca.key", common_name="Our CA", is_authority=True)
    """


@tls_certificate.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse missing and invalid attributes, and attributes that contradict each other."""
    if attrs.get("absent"):
        free = {"days": None, "renew_before": None, "mode": None}
        paths.refuse_with_absent({**attrs, **free}, ("path", "absent"))
    else:
        tls_rules.check_certificate(attrs)


@tls_certificate.to_wire
def to_wire(node: Any) -> Any:
    """Send the configuration of openssl, and the names in its form."""
    attrs = node.attrs
    if attrs.get("absent"):
        return node
    subject, names = tls_rules.common_name(attrs), [tls_rules.qualified(name) for name in attrs.get("names") or ()]
    config = tls_rules.config(subject, names, bool(attrs.get("is_authority")), attrs.get("authority") is not None)
    return node.with_attrs(common_name=subject, names=names, config=config)


tls_certificate.identity(paths.path_identity)
tls_certificate.needs(tls_rules.needs("openssl"))
tls_certificate.check(tls.check_certificate)
tls_certificate.remember(tls.remember_certificate)
tls_certificate.learn(files.learn_content)
tls_certificate.undo(tls.undo_certificate)
