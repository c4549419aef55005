"""Flags become settings; validation errors are told in the words of kube-scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.live.options import FlagError, LogSettings, MetricsSettings, RunOptions, parse_flags, read_options
from kubesched.live.serving.settings import (
    AuthenticationSettings,
    AuthorizationSettings,
    RequestHeaderSettings,
    ServingSettings,
)
from kubesched.scheduler import config


def _options(*flags: str) -> RunOptions:
    return read_options(parse_flags(flags))


def test_the_defaults() -> None:
    options = _options()
    assert options.configuration == config.default()
    assert (options.kubeconfig, options.master, options.context) == (None, "", "")
    assert options.pod_max_in_unschedulable_pods_for_s == 300
    assert options.serving == ServingSettings()
    assert (options.permit_port_sharing, options.permit_address_sharing) == (False, False)
    assert (options.authentication_kubeconfig, options.authorization_kubeconfig) == (None, None)
    assert options.logs == LogSettings("text", 0, ())
    assert options.metrics == MetricsSettings(frozenset(), {})
    assert not options.gates.changed
    assert options.warnings == ()
    assert options.write_config_to is None


def test_who_may_ask() -> None:
    options = _options(
        "--authentication-kubeconfig=/a",
        "--authentication-token-webhook-cache-ttl=1m",
        "--authentication-skip-lookup",
        "--authentication-tolerate-lookup-failure=false",
        "--client-ca-file=/ca",
        "--requestheader-client-ca-file=/proxies",
        "--requestheader-allowed-names=front,back",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--authorization-kubeconfig=/z",
        "--authorization-webhook-cache-authorized-ttl=5s",
        "--authorization-webhook-cache-unauthorized-ttl=500ms",
        "--authorization-always-allow-paths=/healthz",
    )
    assert (options.authentication_kubeconfig, options.authorization_kubeconfig) == (Path("/a"), Path("/z"))
    assert options.serving is not None
    assert options.serving.authentication == AuthenticationSettings(
        client_ca_file="/ca",
        request_headers=RequestHeaderSettings(
            client_ca_file="/proxies", allowed_names=("front", "back"), uid_headers=("X-Remote-Uid",)
        ),
        token_cache_ttl_s=60,
        skip_lookup=True,
        tolerate_lookup_failure=False,
    )
    assert options.serving.authorization == AuthorizationSettings(
        always_allow_paths=("/healthz",), authorized_ttl_s=5, unauthorized_ttl_s=0.5
    )


def test_where_and_with_what_it_is_served() -> None:
    flags = ("--bind-address=::1", "--secure-port=8443", "--cert-dir=/d", "--permit-port-sharing")
    options = _options(*flags, "--tls-cert-file=/c", "--tls-private-key-file=/k")
    assert options.permit_port_sharing
    assert options.serving == ServingSettings(
        bind_address="::1", port=8443, cert_dir="/d", tls_cert_file="/c", tls_private_key_file="/k"
    )


def test_port_0_serves_nothing() -> None:
    assert _options("--secure-port=0").serving is None


def test_how_the_cluster_is_reached() -> None:
    options = _options("--kubeconfig=/k", "--master=https://a", "--context=prod", "--kube-api-qps=0.5")
    assert (options.kubeconfig, options.master, options.context) == (Path("/k"), "https://a", "prod")
    assert (options.client_connection.qps, options.client_connection.burst) == (0.5, 100)
    assert options.leader_election.resource_name == "kube-scheduler"


@pytest.mark.parametrize(
    ("flags", "qps", "burst"),
    [
        pytest.param([], 50.0, 100, id="the scheduler's own defaults"),
        pytest.param(["--kube-api-qps=0", "--kube-api-burst=0"], 5.0, 10, id="0 is the default of any client"),
        pytest.param(["--kube-api-qps=-1"], -1.0, 100, id="no limit"),
    ],
)
def test_how_much_is_asked_of_the_api_server(flags: list[str], qps: float, burst: int) -> None:
    options = _options(*flags)
    assert (options.qps, options.burst) == (qps, burst)


@pytest.mark.parametrize(
    ("flags", "min_version"),
    [
        pytest.param(["--tls-min-version=VersionTLS13"], "VersionTLS13", id="a version"),
        pytest.param(
            ["--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256"],
            "",
            id="suites of TLS 1.2 and 1.3",
        ),
        pytest.param(["--tls-cipher-suites=TLS_AES_256_GCM_SHA384"], "VersionTLS13", id="suites of TLS 1.3 alone"),
    ],
)
def test_the_lowest_version_of_tls(flags: list[str], min_version: str) -> None:
    serving = _options(*flags).serving
    assert serving is not None
    assert serving.tls_min_version == min_version


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(
            ["--secure-port=70000"],
            "--secure-port 70000 must be between 0 and 65535, inclusive. 0 for turning off secure port",
            id="a port too high",
        ),
        pytest.param(
            ["--tls-cert-file=a"],
            "--tls-cert-file and --tls-private-key-file must be given together",
            id="a certificate without key",
        ),
        pytest.param(
            ["--tls-min-version=TLS12"],
            "--tls-min-version: unknown tls version 'TLS12'; one of VersionTLS10, VersionTLS11, VersionTLS12, "
            "VersionTLS13",
            id="no version of TLS",
        ),
        pytest.param(
            ["--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"],
            "--tls-cipher-suites: Cipher suite TLS_RSA_WITH_RC4_128_SHA not supported or doesn't exist",
            id="a suite that is gone",
        ),
        pytest.param(
            ["--requestheader-allowed-names=a, "], 'empty value in "requestheader-allowed-names"', id="a blank name"
        ),
        pytest.param(
            ["--requestheader-uid-headers=X-Uid"],
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header"
            " - API aggregation will not work",
            id="no standard header for the UID",
        ),
        pytest.param(["--logging-format=xml"], 'format: Invalid value: "xml": Unsupported log format', id="format"),
        pytest.param(
            ["--logging-format=json", "--vmodule=a=1"],
            "vmodule: Forbidden: Only supported for text log format",
            id="patterns with JSON",
        ),
        pytest.param(
            ["--log-flush-frequency=0s"],
            'flushFrequency: Invalid value: "0s": Must be greater than zero',
            id="no flush frequency",
        ),
        pytest.param(
            ["--show-hidden-metrics-for-version=1.34"],
            'metrics.showHiddenMetricsForVersion: Invalid value: "1.34": '
            "must be omitted or have the value '1.35'; only the previous minor version is allowed",
            id="hidden metrics of long ago",
        ),
        pytest.param(
            ["--disabled-metrics=a b"],
            'metrics.disabledMetrics: Invalid value: ["a b"]: must be fully qualified metric names matching '
            '"^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "a b"',
            id="no name of a metric",
        ),
        pytest.param(
            ["--emulated-version=1.20"], "emulation version 1.20 is not between [1.33, 1.36]", id="an old version"
        ),
        pytest.param(
            ["--emulated-version=kube=1.35"],
            "--emulated-version: kubesched decides as Kubernetes 1.36 only",
            id="the version before",
        ),
        pytest.param(["--emulated-version=x"], 'could not parse "x" as version', id="no version"),
        pytest.param(
            ["--emulated-version=1.36.4"], "patch version not allowed, got: kube=1.36.4", id="a patch version"
        ),
        pytest.param(
            ["--min-compatibility-version=1.20"],
            "minCompatibilityVersion version 1.20 is not between [1.33, 1.36]",
            id="compatible with too much",
        ),
        pytest.param(
            ["--tls-curve-preferences=23", "--log-json-split-stream"],
            "[--tls-curve-preferences: Python's TLS cannot be limited to a list of key exchange mechanisms, "
            "--log-json-split-stream: Feature LoggingAlphaOptions is disabled, and cannot be enabled]",
            id="refused",
        ),
        pytest.param(
            ["--secure-port=-1", "--disabled-metrics=%"],
            "[--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure port, "
            'metrics.disabledMetrics: Invalid value: ["%"]: must be fully qualified metric names matching '
            '"^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "%"]',
            id="several at once",
        ),
    ],
)
def test_mistakes(flags: list[str], message: str) -> None:
    with pytest.raises(FlagError) as error:
        _options(*flags)
    assert error.value.message == message


@pytest.mark.parametrize(
    ("flags", "warnings"),
    [
        pytest.param(["--profiling=false"], [], id="no profiles are wanted, none are there"),
        pytest.param(
            ["--profiling"], ["--profiling=true has no effect: there are no Go profiles to serve"], id="profiles"
        ),
        pytest.param(["--disable-http2-serving"], [], id="no HTTP/2 is wanted, none is there"),
        pytest.param(
            ["--http2-max-streams-per-connection=5"],
            ["--http2-max-streams-per-connection=5 has no effect: only HTTP/1.1 is served"],
            id="streams of HTTP/2",
        ),
        pytest.param(["--kube-api-content-type=application/json"], [], id="JSON"),
        pytest.param(["--kube-api-content-type=application/vnd.kubernetes.protobuf"], [], id="protobuf"),
        pytest.param(
            ["--requestheader-group-headers=X-Group"],
            [
                "--requestheader-group-headers is set without specifying the standard X-Remote-Group header"
                " - API aggregation will not work"
            ],
            id="no standard header",
        ),
        pytest.param(
            ["--feature-gates=OpportunisticBatching=false"],
            [
                "feature gate OpportunisticBatching=false has no effect: "
                "what was found for a pod always serves the next ones with the same signature"
            ],
            id="a gate without effect",
        ),
        pytest.param(["--emulated-version=1.36", "--log-flush-frequency=5s"], [], id="what is so anyway"),
    ],
)
def test_warnings(flags: list[str], warnings: list[str]) -> None:
    assert list(_options(*flags).warnings) == warnings


def test_a_flag_that_a_file_makes_void_is_warned_of_once(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(config.to_yaml(config.to_manifest(config.default())))
    assert _options(f"--config={path}", "--profiling").warnings == ("--profiling is ignored because --config is given",)


def test_values_that_labels_of_metrics_may_have(tmp_path: Path) -> None:
    manifest = tmp_path / "labels.yaml"
    manifest.write_text('"metric,label": "a,b"\n')
    expected = {("metric", "label"): frozenset(("a", "b"))}
    assert _options("--allow-metric-labels=metric,label=a,b").metrics.allowed_label_values == expected
    assert _options(f"--allow-metric-labels-manifest={manifest}").metrics.allowed_label_values == expected
    with pytest.raises(FlagError, match="cannot specify both allowListMapping and allowListMappingManifest"):
        _options("--allow-metric-labels=m,l=a", f"--allow-metric-labels-manifest={manifest}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "failed to read allow list manifest: No such file or directory", id="no file"),
        pytest.param("[", "failed to parse allow list manifest: ", id="no YAML"),
        pytest.param("[a]", "failed to parse allow list manifest: a mapping", id="no mapping"),
        pytest.param("a: b", "invalid allow list mapping in manifest: must have keys with format", id="no label"),
    ],
)
def test_mistakes_in_a_manifest_of_labels(tmp_path: Path, content: str | None, message: str) -> None:
    manifest = tmp_path / "labels.yaml"
    if content is not None:
        manifest.write_text(content)
    with pytest.raises(FlagError) as error:
        _options(f"--allow-metric-labels-manifest={manifest}")
    assert message in error.value.message


def test_all_flags_are_shown_given_or_not() -> None:
    flags = _options("-v4", "--disabled-metrics=a,b", "--leader-elect=0", "--feature-gates=ComponentFlagz=true").flags
    assert flags["v"] == "4"
    assert flags["disabled-metrics"] == "[a,b]"
    assert flags["leader-elect"] == "false"
    assert flags["feature-gates"] == ":ComponentFlagz=true"
    assert flags["leader-elect-lease-duration"] == "15s"
