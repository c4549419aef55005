"""What the flags of `kubesched run` come to: settings for each part of the program, checked and ready to be used.

No text is left to be parsed. No secret is in here: keys and tokens are named by their files.

Those of the server, secure serving, authentication, authorization and which metrics it shows, are worked out here, too.
Errors are collected, so that the user sees all at once, in the words, and with the paths, of Kubernetes. None of
kube-scheduler's own metrics is hidden in v1.36, so `--show-hidden-metrics-for-version` adds none.

Next: `read` for how the rest comes about; `kubesched.live.serving.settings` for the server's part of the outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from kubesched.framework.handle import Registry
from kubesched.k8s.model.kubernetes_yaml import load_document, yaml_problem
from kubesched.live.serving.settings import (
    AuthenticationSettings,
    AuthorizationSettings,
    RequestHeaderSettings,
    ServingSettings,
)
from kubesched.older.config import Emulation, PolicyConfigMap
from kubesched.scheduler.config import (
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
)
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.feature_gates import FeatureGates
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily, relabelled
from kubesched.scheduler.plugin_loading import PluginSource

_QPS_OF_ANY_CLIENT = 5.0
_BURST_OF_ANY_CLIENT = 10


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What to log, and how."""

    format: str
    """`text` or `json`."""
    verbosity: int
    vmodule: tuple[tuple[str, int], ...]
    """(pattern of file names, verbosity there)."""


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """What to leave out of the metrics."""

    disabled: frozenset[str]
    allowed_label_values: Mapping[tuple[str, str], frozenset[str]]
    """By (metric, label); other values are told as `unexpected`."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """All that `kubesched run` was told."""

    configuration: KubeSchedulerConfiguration
    """The effective one: file or defaults, and the flags that override them."""
    plugins: PluginSource
    """Where plugins from outside come from."""
    registry: Registry
    """All plugins."""
    emulation: Emulation | None
    """The older scheduler that decides in its place, if one was asked for."""
    policy_config_map: PolicyConfigMap | None
    """Where a Policy is still to be read from; the options are then to be read again with it."""
    master: str
    """Address of the API server; empty: as in the kubeconfig."""
    context: str
    """Context of the kubeconfig; empty: the current one."""
    keeps_classes: bool
    """Whether decisions come from the class cache."""
    serves_web_page: bool
    """Whether the secure port has the web page."""
    record_to: Path | None
    """Where to keep a journal of the scheduling loop."""
    write_config_to: Path | None
    pod_max_in_unschedulable_pods_for_s: float
    serving: ServingSettings | None
    """None: nothing is served."""
    permit_port_sharing: bool
    permit_address_sharing: bool
    authentication_kubeconfig: Path | None
    """Of a user who may ask whom a token belongs to. None: that of the pod; outside of pods tokens say nothing."""
    authorization_kubeconfig: Path | None
    """Of a user who may ask what others may do. None: that of the pod; outside of pods only open paths are served."""
    logs: LogSettings
    metrics: MetricsSettings
    gates: FeatureGates
    flags: Mapping[str, str]
    """Every flag with its value, given or default, as /flagz shows it."""
    warnings: tuple[str, ...]

    @property
    def kubeconfig(self) -> Path | None:
        """None: as in a pod of the cluster."""
        path = self.client_connection.kubeconfig
        return Path(path) if path else None

    @property
    def qps(self) -> float:
        """Requests a second; below 0: as many as there are. 0 stands for the default of all clients."""
        return self.client_connection.qps or _QPS_OF_ANY_CLIENT

    @property
    def burst(self) -> int:
        return self.client_connection.burst or _BURST_OF_ANY_CLIENT

    @property
    def client_connection(self) -> ClientConnectionConfiguration:
        return self.configuration.client_connection

    @property
    def leader_election(self) -> LeaderElectionConfiguration:
        return self.configuration.leader_election


FlagValue = Callable[[str], Any]
"""The value of a flag by its name, given or default."""

_HIGHEST_PORT = 65535
_STANDARD_HEADERS = (
    ("requestheader-username-headers", "X-Remote-User", "header"),
    ("requestheader-group-headers", "X-Remote-Group", "header"),
    ("requestheader-extra-headers-prefix", "X-Remote-Extra-", "header prefix"),
)
_LISTS_WITHOUT_BLANKS = (
    "requestheader-username-headers",
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
    "requestheader-allowed-names",
    "requestheader-uid-headers",
)


def _checked_version(suites: Sequence[str], version: str) -> str:
    """Suites of TLS 1.3 alone leave nothing to speak to older clients with."""
    from kubesched.live.serving.certificates import min_version, openssl_ciphers

    min_version(version)
    return "VersionTLS13" if suites and not openssl_ciphers(suites) else version


def serving_settings(value: FlagValue) -> ServingSettings | None:
    """None if nothing is to be served. Raises `ServingError` for names that TLS does not know."""
    suites, version = value("tls-cipher-suites"), value("tls-min-version")
    if suites or version:
        version = _checked_version(suites, version)
    if value("secure-port") == 0:
        return None
    return ServingSettings(
        bind_address=value("bind-address"),
        port=value("secure-port"),
        cert_dir=value("cert-dir"),
        tls_cert_file=value("tls-cert-file"),
        tls_private_key_file=value("tls-private-key-file"),
        tls_min_version=version,
        tls_cipher_suites=suites,
        authentication=_authentication(value),
        authorization=_authorization(value),
    )


_PAGE_ITSELF = ("/web", "/web/", "/web/static/*")
"""Files that hold nothing of the cluster. What they show is asked for under /web/api/, with a permission."""


def _authentication(value: FlagValue) -> AuthenticationSettings:
    return AuthenticationSettings(
        client_ca_file=value("client-ca-file"),
        request_headers=RequestHeaderSettings(
            client_ca_file=value("requestheader-client-ca-file"),
            allowed_names=value("requestheader-allowed-names"),
            username_headers=value("requestheader-username-headers"),
            uid_headers=value("requestheader-uid-headers"),
            group_headers=value("requestheader-group-headers"),
            extra_header_prefixes=value("requestheader-extra-headers-prefix"),
        ),
        token_cache_ttl_s=value("authentication-token-webhook-cache-ttl").seconds,
        skip_lookup=value("authentication-skip-lookup"),
        tolerate_lookup_failure=value("authentication-tolerate-lookup-failure"),
    )


def _authorization(value: FlagValue) -> AuthorizationSettings:
    return AuthorizationSettings(
        always_allow_paths=(*value("authorization-always-allow-paths"), *(_PAGE_ITSELF if value("web") else ())),
        authorized_ttl_s=value("authorization-webhook-cache-authorized-ttl").seconds,
        unauthorized_ttl_s=value("authorization-webhook-cache-unauthorized-ttl").seconds,
    )


def serving_errors(value: FlagValue) -> Iterator[str]:
    port = value("secure-port")
    if not 0 <= port <= _HIGHEST_PORT:
        yield f"--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
    if value("web") and port == 0:
        yield "--web needs the secure port, which --secure-port 0 turns off"
    if bool(value("tls-cert-file")) != bool(value("tls-private-key-file")):
        yield "--tls-cert-file and --tls-private-key-file must be given together"
    for flag in _LISTS_WITHOUT_BLANKS:
        if not all(item.strip() for item in value(flag)):
            yield f'empty value in "{flag}"'
    uid_headers = value("requestheader-uid-headers")
    if uid_headers and "x-remote-uid" not in map(str.lower, uid_headers):
        yield (
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header"
            " - API aggregation will not work"
        )


def serving_warnings(value: FlagValue) -> Iterator[str]:
    for name, standard, what in _STANDARD_HEADERS:
        headers = value(name)
        if headers and standard.lower() not in map(str.lower, headers):
            yield (f"--{name} is set without specifying the standard {standard} {what} - API aggregation will not work")
    if value("tls-min-version") in ("VersionTLS10", "VersionTLS11"):
        yield f"--tls-min-version={value('tls-min-version')}: OpenSSL may be set to refuse versions before TLS 1.2"


UNEXPECTED = "unexpected"


def shown_families(families: Iterable[MetricFamily], settings: MetricsSettings) -> Iterator[MetricFamily]:
    """The families as they are to be shown; series whose labels become the same are added up."""
    for family in families:
        name = family.definition.full_name
        if name in settings.disabled:
            continue
        allowed = [settings.allowed_label_values.get((name, label)) for label in family.definition.labels]
        yield _constrained(family, allowed) if any(values is not None for values in allowed) else family


def _constrained(family: MetricFamily, allowed: list[frozenset[str] | None]) -> MetricFamily:
    def told(labels: LabelValues) -> LabelValues:
        pairs = zip(labels, allowed, strict=True)
        return tuple(value if values is None or value in values else UNEXPECTED for value, values in pairs)

    return relabelled(family, told)


PREVIOUS_VERSION = "1.35"
_METRIC = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = "[a-zA-Z_][a-zA-Z0-9_]*"
_METRIC_NAME = re.compile(_METRIC)
_LABEL_OF_METRIC = re.compile(f"({_METRIC}),({_LABEL})")
_KEY_RULE = (
    "must have keys with format `metricName,labelName` where metricName matches "
    f'"{_METRIC}" and labelName matches "{_LABEL}"'
)


def metrics_settings(value: FlagValue, errors: ErrorList) -> MetricsSettings:
    """The settings; whatever is wrong goes to `errors`."""
    version = value("show-hidden-metrics-for-version")
    if version not in ("", PREVIOUS_VERSION):
        rule = f"must be omitted or have the value '{PREVIOUS_VERSION}'; only the previous minor version is allowed"
        errors.invalid("metrics.showHiddenMetricsForVersion", version, rule)
    _check_names(value("disabled-metrics"), errors)
    return MetricsSettings(
        disabled=frozenset(value("disabled-metrics")),
        allowed_label_values=_allowed_label_values(
            dict(value("allow-metric-labels")), value("allow-metric-labels-manifest"), errors
        ),
    )


def _check_names(names: tuple[str, ...], errors: ErrorList) -> None:
    wrong = next((name for name in names if not _METRIC_NAME.fullmatch(name)), None)
    if wrong is not None:
        rule = f'must be fully qualified metric names matching "^{_METRIC}$", got "{wrong}"'
        errors.invalid("metrics.disabledMetrics", names, rule)


def _allowed_label_values(
    given: dict[str, str], manifest: str, errors: ErrorList
) -> Mapping[tuple[str, str], frozenset[str]]:
    if not all(map(_LABEL_OF_METRIC.fullmatch, given)):
        errors.invalid("metrics.allowListMapping", given, _KEY_RULE)
        return {}
    if manifest:
        from_file = _read_manifest(manifest, errors)
        if given:
            both = "cannot specify both allowListMapping and allowListMappingManifest"
            errors.invalid("metrics", manifest, both)
        given = from_file | given
    return MappingProxyType(
        {tuple(key.split(",", 1)): frozenset(values.split(",")) for key, values in given.items()}  # type: ignore[misc]
    )


def _read_manifest(path: str, errors: ErrorList) -> dict[str, str]:
    field = "metrics.allowListMappingManifest"
    try:
        content = load_document(Path(path).read_bytes())
    except OSError as problem:
        errors.invalid(field, path, f"failed to read allow list manifest: {problem.strerror or problem}")
        return {}
    except yaml.YAMLError as problem:
        errors.invalid(field, path, f"failed to parse allow list manifest: {yaml_problem(problem)}")
        return {}
    found = {} if content is None else content
    if not isinstance(found, dict) or not all(isinstance(item, str) for pair in found.items() for item in pair):
        errors.invalid(field, path, "failed to parse allow list manifest: a mapping from text to text is expected")
        return {}
    if not all(map(_LABEL_OF_METRIC.fullmatch, found)):
        errors.invalid(field, path, f"invalid allow list mapping in manifest: {_KEY_RULE}")
        return {}
    return found
