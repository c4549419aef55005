"""The part of a KubeSchedulerConfiguration that makes a stock kube-scheduler call the extender server.

It names the verbs that the plugins have an answer to, no others: a call that changes nothing costs every pod time.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.plugin_tools.extender_server.access import with_token
from kubesched.plugin_tools.extender_server.outside_profiles import OutsideProfiles
from kubesched.scheduler.config import Duration, ExtenderConfiguration, ExtenderTLSConfig, to_yaml
from kubesched.scheduler.config.manifest import plain
from kubesched.scheduler.config.schema import API_VERSION

DEFAULT_SCHEDULER_NAME = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where kube-scheduler finds the server, and how it is called there."""

    url: str
    ca_file: str = ""
    """What kube-scheduler is to trust: the server's own certificate will do."""
    asks_for_certificate: bool = False
    token: str | None = None
    """What callers show where no certificate is asked for; part of the address."""
    timeout_s: int = 5


def extender_configuration(
    profiles: OutsideProfiles, endpoint: Endpoint, *, is_followed: bool, binds: bool
) -> ExtenderConfiguration:
    """`binds` asks for bind also where no plugin takes part in it."""
    is_tls = endpoint.url.startswith("https://")
    tls = None
    if is_tls:
        certificate = ("/path/to/client.crt", "/path/to/client.key") if endpoint.asks_for_certificate else ("", "")
        tls = ExtenderTLSConfig(ca_file=endpoint.ca_file, cert_file=certificate[0], key_file=certificate[1])
    return ExtenderConfiguration(
        url_prefix=endpoint.url if endpoint.token is None else with_token(endpoint.url, endpoint.token),
        filter_verb="filter" if profiles.filters else "",
        preempt_verb="preempt" if profiles.filters and is_followed else "",
        prioritize_verb="prioritize" if profiles.scores else "",
        weight=profiles.score_weight if profiles.scores else 0,
        bind_verb="bind" if is_followed and (binds or profiles.binds) else "",
        enable_https=is_tls,
        tls_config=tls,
        http_timeout=Duration(endpoint.timeout_s * 10**9),
        node_cache_capable=is_followed,
    )


def configuration_yaml(extender: ExtenderConfiguration, scheduler_names: list[str]) -> str:
    """A whole KubeSchedulerConfiguration; profiles only where they have names of their own."""
    manifest: dict[str, object] = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    if scheduler_names != [DEFAULT_SCHEDULER_NAME]:
        manifest["profiles"] = [{"schedulerName": name} for name in scheduler_names]
    manifest["extenders"] = [plain(extender)]
    return to_yaml(manifest)
