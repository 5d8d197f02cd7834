"""The texts of drop-in files of ssh and sshd, and the rules for them. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.shared import drop_in_texts, file_sources, item_rules, records


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Source: sshd_config(5) and ssh_config(5) of OpenSSH 9.2 with Debian's additions. An unknown word that resembles none
# of them is not refused: it may belong to a newer version.
SERVER = _words("""
AcceptEnv AddressFamily AllowAgentForwarding AllowGroups AllowStreamLocalForwarding AllowTcpForwarding AllowUsers
AuthenticationMethods AuthorizedKeysCommand AuthorizedKeysCommandUser AuthorizedKeysFile AuthorizedPrincipalsCommand
AuthorizedPrincipalsCommandUser AuthorizedPrincipalsFile Banner CASignatureAlgorithms ChannelTimeout ChrootDirectory
Ciphers ClientAliveCountMax ClientAliveInterval Compression DebianBanner DenyGroups DenyUsers DisableForwarding
ExposeAuthInfo FingerprintHash ForceCommand GSSAPIAuthentication GSSAPICleanupCredentials GSSAPIKexAlgorithms
GSSAPIKeyExchange GSSAPIStoreCredentialsOnRekey GSSAPIStrictAcceptorCheck GatewayPorts HostCertificate HostKey
HostKeyAgent HostKeyAlgorithms HostbasedAcceptedAlgorithms HostbasedAuthentication HostbasedUsesNameFromPacketOnly IPQoS
IgnoreRhosts IgnoreUserKnownHosts KbdInteractiveAuthentication KerberosAuthentication KerberosGetAFSToken
KerberosOrLocalPasswd KerberosTicketCleanup KexAlgorithms ListenAddress LogLevel LogVerbose LoginGraceTime MACs
MaxAuthTries MaxSessions MaxStartups ModuliFile PasswordAuthentication PerSourceMaxStartups PerSourceNetBlockSize
PerSourcePenalties PermitEmptyPasswords PermitListen PermitOpen PermitRootLogin PermitTTY PermitTunnel
PermitUserEnvironment PermitUserRC PidFile Port PrintLastLog PrintMotd PubkeyAcceptedAlgorithms PubkeyAuthOptions
PubkeyAuthentication RefuseConnection RekeyLimit RequiredRSASize RevokedKeys SecurityKeyProvider SetEnv
StreamLocalBindMask StreamLocalBindUnlink StrictModes Subsystem SyslogFacility TCPKeepAlive TrustedUserCAKeys
UnusedConnectionTimeout UseDNS UsePAM VersionAddendum X11DisplayOffset X11Forwarding X11UseLocalhost XAuthLocation
""")
CLIENT = _words("""
AddKeysToAgent AddressFamily BatchMode BindAddress BindInterface CASignatureAlgorithms CanonicalDomains
CanonicalizeFallbackLocal CanonicalizeHostname CanonicalizeMaxDots CanonicalizePermittedCNAMEs CertificateFile
CheckHostIP Ciphers ClearAllForwardings Compression ConnectTimeout ConnectionAttempts ControlMaster ControlPath
ControlPersist DynamicForward EnableEscapeCommandline EnableSSHKeysign EscapeChar ExitOnForwardFailure FingerprintHash
ForkAfterAuthentication ForwardAgent ForwardX11 ForwardX11Timeout ForwardX11Trusted GSSAPIAuthentication
GSSAPIClientIdentity GSSAPIDelegateCredentials GSSAPIKexAlgorithms GSSAPIKeyExchange GSSAPIRenewalForcesRekey
GSSAPIServerIdentity GSSAPITrustDns GatewayPorts GlobalKnownHostsFile HashKnownHosts HostKeyAlgorithms HostKeyAlias
HostbasedAcceptedAlgorithms HostbasedAuthentication Hostname IPQoS IdentitiesOnly IdentityAgent IdentityFile
IgnoreUnknown KbdInteractiveAuthentication KbdInteractiveDevices KexAlgorithms KnownHostsCommand LocalCommand
LocalForward LogLevel LogVerbose MACs NoHostAuthenticationForLocalhost NumberOfPasswordPrompts PKCS11Provider
PasswordAuthentication PermitLocalCommand PermitRemoteOpen Port PreferredAuthentications ProxyCommand ProxyJump
ProxyUseFdpass PubkeyAcceptedAlgorithms PubkeyAuthentication RekeyLimit RemoteCommand RemoteForward RequestTTY
RequiredRSASize RevokedHostKeys SecurityKeyProvider SendEnv ServerAliveCountMax ServerAliveInterval SessionType SetEnv
StdinNull StreamLocalBindMask StreamLocalBindUnlink StrictHostKeyChecking SyslogFacility TCPKeepAlive Tunnel
TunnelDevice UpdateHostKeys User UserKnownHostsFile VerifyHostKeyDNS VisualHostKey XAuthLocation
""")
CRITERIA = ("User", "Group", "Host", "LocalAddress", "LocalPort", "Address", "RDomain", "All")


def text(attrs: records.Attrs, block: str) -> str:
    """Return the content of a drop-in file.

    :param block: the line that limits the settings, such as `Match User backup`; "" for none
    """
    if attrs.get("content") is not None:
        content = str(attrs["content"])
        return content if content.endswith("\n") else content + "\n"
    settings = [(key, value) for key, values in attrs["settings"].items() for value in _several(values)]
    rows = [f"{'    ' if block else ''}{key} {_word(value)}\n" for key, value in settings]
    return drop_in_texts.HEADER + (f"{block}\n" if block else "") + "".join(rows)


def check(attrs: records.Attrs, known: Sequence[str]) -> None:
    """Check the settings of a drop-in file.

    :param known: the names of settings
    :raises ValueError: if they are missing or not valid, or contradict `content`
    """
    drop_in_texts.check_name(attrs["name"])
    settings, content = attrs.get("settings"), attrs.get("content")
    if attrs.get("absent"):
        if settings is not None or content is not None:
            raise ValueError("absent can't be combined with settings or content")
        return
    if (settings is None) == (content is None):
        raise ValueError("either settings or content is required unless absent is true")
    if content is not None:
        file_sources.refuse_secret(content, "content", "let ssh read it from a `file` of mode 0600")
        return
    if not settings:
        raise ValueError("settings is empty; absent: true removes the file")
    for key, values in settings.items():
        _check_setting(key, values, known)


def _check_setting(key: str, values: Any, known: Sequence[str]) -> None:
    if key.lower() in ("match", "host", "include"):
        raise Wrong(f"settings: {key} is not a setting", "limit the settings with match or host, or write content")
    if not re.match(r"[A-Za-z][A-Za-z0-9]*\Z", key):
        raise Wrong(f"settings: {show(key)} is not the name of a setting", "use the names of the manual page")
    if key.lower() not in {name.lower() for name in known}:
        help = did_you_mean(key, known)
        if help:
            raise Wrong(f"settings: unknown setting {show(key)}", help)
    if values is None or isinstance(values, Mapping):
        raise Wrong(f"settings: {key} has no value", "write text, a number, true or false, or a list of them")
    if not isinstance(values, str):
        item_rules.check_words(key, _several(values))
    for value in _several(values):
        if hasattr(value, "reveal"):
            raise Wrong(f"settings: {key} contains a secret, which every user of the host can read", "use a file")
        if not isinstance(value, (str, int, float)) or not str(value).strip() or re.search(r"[\n\r\0]", str(value)):
            raise Wrong(f"settings: {key} has a value that is not one line of text", "write one line per value")


def check_match(match: str) -> None:
    """Check the criteria of a Match block. Source: sshd_config(5).

    :raises Wrong: if they are not valid
    """
    words = match.split()
    for word in words[::2] if words[:1] != ["all"] else ():
        if word.lower() not in {name.lower() for name in CRITERIA}:
            help = did_you_mean(word, CRITERIA) or f"use {', '.join(CRITERIA)}, such as `User backup`"
            raise Wrong(f"match: sshd has no criterion {show(word)}", help)
    if not words or (len(words) % 2 and words[0].lower() != "all"):
        raise Wrong("match: a criterion has no pattern", "write criteria and patterns, such as `User backup`")


def _several(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, (str, int, float)) or hasattr(value, "reveal") else list(value)


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
