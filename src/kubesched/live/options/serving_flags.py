"""The flags about who may ask the scheduler what, over HTTPS: secure serving, authentication, authorization.

Next: `serving` for what becomes of them.
"""

from __future__ import annotations

from kubesched.live.options.flag import Flag, FlagUse
from kubesched.live.options.value_kinds import BOOL, DURATION, INT, INT32S, IP, STRING, STRINGS
from kubesched.live.serving.settings import DEFAULT_PORT
from kubesched.scheduler.config import Duration

_TEN_SECONDS = Duration.of_seconds(10)

SECURE_SERVING_FLAGS = (
    Flag("bind-address", IP, "0.0.0.0", "Address to listen on; 0.0.0.0 and :: stand for all interfaces."),
    Flag("secure-port", INT, DEFAULT_PORT, "Port to serve HTTPS on; 0 serves nothing."),
    Flag(
        "disable-http2-serving",
        BOOL,
        False,
        "Do not serve HTTP/2.",
        use=FlagUse.WITHOUT_EFFECT,
        why="only HTTP/1.1 is served",
        fits=(True,),
    ),
    Flag(
        "cert-dir",
        STRING,
        "",
        "Directory of kube-scheduler.crt and kube-scheduler.key, written there if absent; by default a certificate is "
        "made in memory. Ignored if --tls-cert-file is given.",
    ),
    Flag("tls-cert-file", STRING, "", "File of the certificate for HTTPS, followed by those of its authorities."),
    Flag("tls-private-key-file", STRING, "", "File of the private key of --tls-cert-file."),
    Flag(
        "tls-cipher-suites",
        STRINGS,
        (),
        "Cipher suites to offer, by their IANA names; those of TLS 1.3 cannot be chosen. By default OpenSSL decides.",
    ),
    Flag(
        "tls-curve-preferences",
        INT32S,
        (),
        "Key exchange mechanisms to offer, as numbers of Go's CurveID.",
        use=FlagUse.REFUSED,
        why="Python's TLS cannot be held to a list of key exchange mechanisms",
    ),
    Flag(
        "tls-min-version",
        STRING,
        "",
        "Lowest version of TLS to speak: VersionTLS10, VersionTLS11, VersionTLS12 (the default) or VersionTLS13.",
    ),
    Flag(
        "tls-sni-cert-key",
        STRINGS,
        (),
        "A further certificate and key, for the host names that it is for: cert,key[:name,name].",
        use=FlagUse.REFUSED,
        why="one certificate is served under all names",
    ),
    Flag(
        "http2-max-streams-per-connection",
        INT,
        0,
        "Most streams of a connection with HTTP/2.",
        use=FlagUse.WITHOUT_EFFECT,
        why="only HTTP/1.1 is served",
    ),
    Flag("permit-port-sharing", BOOL, False, "Let several processes listen on the port (SO_REUSEPORT)."),
    Flag(
        "permit-address-sharing",
        BOOL,
        False,
        "Take the port although the kernel still holds it, or holds it for another address (SO_REUSEADDR).",
    ),
)

AUTHENTICATION_FLAGS = (
    Flag(
        "authentication-kubeconfig",
        STRING,
        "",
        "Kubeconfig of a user who may create tokenreviews; in a pod, its own account by default. Without either nobody "
        "with a token is known, and no authority for client certificates is looked up in the cluster.",
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to remember whom a token belongs to.",
    ),
    Flag(
        "client-ca-file",
        STRING,
        "",
        "Authorities whose client certificates are trusted; the common name is the user.",
    ),
    Flag("requestheader-username-headers", STRINGS, ("x-remote-user",), "Headers in which a proxy names the user."),
    Flag("requestheader-uid-headers", STRINGS, (), "Headers in which a proxy names the UID of the user."),
    Flag("requestheader-group-headers", STRINGS, ("x-remote-group",), "Headers in which a proxy names the groups."),
    Flag(
        "requestheader-extra-headers-prefix",
        STRINGS,
        ("x-remote-extra-",),
        "How the headers begin in which a proxy says more about the user.",
    ),
    Flag(
        "requestheader-client-ca-file",
        STRING,
        "",
        "Authorities for the client certificates of proxies that may name the user.",
    ),
    Flag(
        "requestheader-allowed-names",
        STRINGS,
        (),
        "Common names of proxies that may name the user; by default all that --requestheader-client-ca-file vouches "
        "for.",
    ),
    Flag(
        "authentication-skip-lookup",
        BOOL,
        False,
        "Do not look up in the cluster what the flags leave open about authentication.",
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        BOOL,
        True,
        "Go on if that lookup fails; everybody may then be anonymous.",
    ),
)

AUTHORIZATION_FLAGS = (
    Flag(
        "authorization-kubeconfig",
        STRING,
        "",
        "Kubeconfig of a user who may create subjectaccessreviews; in a pod, its own account by default. Without either"
        " only --authorization-always-allow-paths are served.",
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to remember that a request is allowed.",
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        _TEN_SECONDS,
        "How long to remember that a request is not allowed.",
    ),
    Flag(
        "authorization-always-allow-paths",
        STRINGS,
        ("/healthz", "/readyz", "/livez"),
        "Paths that everybody may ask for; one that ends in * stands for all that begin so.",
    ),
)
