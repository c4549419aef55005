"""The flags are those of kube-scheduler v1.36.4, with its defaults."""

from __future__ import annotations

import pytest

from kubesched.live.options.flag import FlagUse
from kubesched.live.options.flag_table import FLAGS, FLAGS_BY_NAME

FLAGS_OF_KUBE_SCHEDULER = {
    "allow-metric-labels": "[]",
    "allow-metric-labels-manifest": "",
    "authentication-kubeconfig": "",
    "authentication-skip-lookup": "false",
    "authentication-token-webhook-cache-ttl": "10s",
    "authentication-tolerate-lookup-failure": "true",
    "authorization-always-allow-paths": "[/healthz,/readyz,/livez]",
    "authorization-kubeconfig": "",
    "authorization-webhook-cache-authorized-ttl": "10s",
    "authorization-webhook-cache-unauthorized-ttl": "10s",
    "bind-address": "0.0.0.0",
    "cert-dir": "",
    "client-ca-file": "",
    "config": "",
    "contention-profiling": "true",
    "disable-http2-serving": "false",
    "disabled-metrics": "[]",
    "emulated-version": "[]",
    "feature-gates": "",
    "http2-max-streams-per-connection": "0",
    "kube-api-burst": "100",
    "kube-api-content-type": "application/vnd.kubernetes.protobuf",
    "kube-api-qps": "50",
    "kubeconfig": "",
    "leader-elect": "true",
    "leader-elect-lease-duration": "15s",
    "leader-elect-renew-deadline": "10s",
    "leader-elect-resource-lock": "leases",
    "leader-elect-resource-name": "kube-scheduler",
    "leader-elect-resource-namespace": "kube-system",
    "leader-elect-retry-period": "2s",
    "log-flush-frequency": "5s",
    "log-json-info-buffer-size": "0",
    "log-json-split-stream": "false",
    "log-text-info-buffer-size": "0",
    "log-text-split-stream": "false",
    "logging-format": "text",
    "master": "",
    "min-compatibility-version": "[]",
    "permit-address-sharing": "false",
    "permit-port-sharing": "false",
    "pod-max-in-unschedulable-pods-duration": "5m0s",
    "profiling": "true",
    "requestheader-allowed-names": "[]",
    "requestheader-client-ca-file": "",
    "requestheader-extra-headers-prefix": "[x-remote-extra-]",
    "requestheader-group-headers": "[x-remote-group]",
    "requestheader-uid-headers": "[]",
    "requestheader-username-headers": "[x-remote-user]",
    "secure-port": "10259",
    "show-hidden-metrics-for-version": "",
    "tls-cert-file": "",
    "tls-cipher-suites": "[]",
    "tls-curve-preferences": "[]",
    "tls-min-version": "",
    "tls-private-key-file": "",
    "tls-sni-cert-key": "[]",
    "v": "0",
    "version": "false",
    "vmodule": "",
    "write-config-to": "",
}


def test_every_flag_of_kube_scheduler_is_there_with_its_default() -> None:
    ours = {flag.name: flag.kind.show(flag.default) for flag in FLAGS if flag.group != "older"}
    more = {"context": "", "no-class-cache": "false", "plugin": "[]", "record": "", "web": "false"}
    assert ours == FLAGS_OF_KUBE_SCHEDULER | more
    assert len(FLAGS_BY_NAME) == len(FLAGS)


@pytest.mark.parametrize("name", sorted(FLAGS_BY_NAME))
def test_a_flag_that_is_not_used_says_why(name: str) -> None:
    flag = FLAGS_BY_NAME[name]
    assert bool(flag.why) == (flag.use is not FlagUse.USED)
    assert flag.help.endswith(".")
    assert flag.group
