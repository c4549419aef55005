"""Extenders that are called without a look at who answers are told, at the start and by `kubesched config validate`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.live.options import parse_flags, read_options
from kubesched.scheduler.config import ExtenderConfiguration, ExtenderTLSConfig
from kubesched.scheduler.config.configuration import extender_warnings, hide_password

_URL = "https://plugins.svc:8888"
_UNVERIFIED = (
    "extenders[0]: enableHTTPS without tlsConfig.caFile or caData trusts any certificate, as in kube-scheduler: "
    f"whoever answers at {_URL} decides where pods go"
)
_FILE = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: {_URL}
  filterVerb: filter
  enableHTTPS: true
"""


@pytest.mark.parametrize(
    ("extender", "warning"),
    [
        pytest.param(ExtenderConfiguration(_URL, enable_https=True), _UNVERIFIED, id="no authorities"),
        pytest.param(
            ExtenderConfiguration(_URL, tls_config=ExtenderTLSConfig(insecure=True)),
            f"extenders[0].tlsConfig.insecure: whoever answers at {_URL} decides where pods go, whatever its "
            "certificate",
            id="told not to look",
        ),
        pytest.param(
            ExtenderConfiguration("http://me:secret@10.1.2.3:80/x"),
            "extenders[0].urlPrefix: http://me:***@10.1.2.3:80/x is neither encrypted nor verified: consider "
            "enableHTTPS and tlsConfig",
            id="in the clear",
        ),
        pytest.param(
            ExtenderConfiguration(_URL, enable_https=True, tls_config=ExtenderTLSConfig(ca_file="ca.crt")),
            "",
            id="good",
        ),
        pytest.param(ExtenderConfiguration("http://me:secret@127.0.0.1:8888"), "", id="this machine"),
        pytest.param(
            ExtenderConfiguration("http://localhost.evil.example"), "localhost.evil.example", id="looks like it"
        ),
        pytest.param(ExtenderConfiguration("https://plugins.svc"), "", id="the system's authorities"),
    ],
)
def test_what_is_told(extender: ExtenderConfiguration, warning: str) -> None:
    told = extender_warnings([extender])
    assert ("".join(told) == warning) or (warning and warning in told[0] and len(told) == 1)


def test_validate_says_so_and_still_says_ok(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(_FILE)
    result = CliRunner().invoke(main, ["config", "validate", str(file)])
    assert (result.exit_code, result.stdout) == (0, f"{file}: ok\n")
    assert result.stderr == f"{file}: warning: {_UNVERIFIED}\n"


def test_the_scheduler_says_so_at_its_start(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(_FILE)
    assert _UNVERIFIED in read_options(parse_flags(["--config", str(file)])).warnings


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a:b@c/d", "http://a:***@c/d"),
        ("http://c/d?x=a:b@e", "http://c/d?x=a:b@e"),
        ("https://:b@c", "https://:***@c"),
        ("http://c:80", "http://c:80"),
    ],
)
def test_a_password_in_an_address_is_not_shown(url: str, shown: str) -> None:
    assert hide_password(url) == shown
