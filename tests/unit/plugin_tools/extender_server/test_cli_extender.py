"""`kubesched extender` on the command line: what it prints, and how it says no."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main
from kubesched.scheduler.config import load

PLUGIN = """
from kubesched.framework import OK


class Anywhere:
    name = "Anywhere"

    def filter_node(self, cycle, pod, node):
        return OK

    def permit(self, cycle, pod, node_name):
        return OK
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    path = tmp_path / "anywhere.py"
    path.write_text(PLUGIN)
    return str(path)


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["extender", *arguments], env={"KUBECONFIG": "/none", "HOME": "/none"})
    return result.exit_code, result.stdout, result.stderr


def test_the_configuration_is_printed_and_can_be_loaded(plugin: str) -> None:
    token_file = Path(plugin).with_name("token")
    given = ("--token-file", str(token_file))
    code, text, warnings = run("--plugin", plugin, "--print-config", "--port", "8899", *given)
    assert code == 0
    (extender,) = load(text, "printed").extenders
    token = token_file.read_text().strip()
    assert extender.url_prefix == f"http://kubesched:{token}@127.0.0.1:8899"
    assert extender.filter_verb == "filter"
    assert warnings == "warning: Anywhere: kube-scheduler does not call extenders for permit: ignored\n"


def test_a_token_that_no_server_will_know_is_told(plugin: str) -> None:
    _, _, warnings = run("--plugin", plugin, "--print-config")
    assert "warning: no server will accept the printed token: use --token-file, here and when serving\n" in warnings


def test_kube_scheduler_is_told_the_address_that_it_can_reach(plugin: str) -> None:
    _, text, warnings = run(
        "--plugin", plugin, "--print-config", "--bind-address", "0.0.0.0", "--url-prefix", "http://plugins.svc:8888/"
    )
    assert load(text, "printed").extenders[0].url_prefix.endswith("@plugins.svc:8888")
    assert (
        "warning: the token is sent to 0.0.0.0 unencrypted: consider --tls-cert-file and --client-ca-file" in warnings
    )


def test_letting_anybody_in_is_told(plugin: str) -> None:
    _, text, warnings = run("--plugin", plugin, "--print-config", "--insecure-allow-anybody")
    assert load(text, "printed").extenders[0].url_prefix == "http://127.0.0.1:8888"
    assert (
        "warning: anyone who can reach 127.0.0.1 may call the plugins and bind pods: remove --insecure-allow-anybody"
        in warnings
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--no-cluster"], "no plugin of your own is enabled", id="nothing to serve"),
        pytest.param(["--plugin", "/none.py"], "/none.py: No such file", id="no such plugin"),
        pytest.param(["--config", "/none.yaml"], "/none.yaml: No such file", id="no such configuration"),
        pytest.param(["--tls-cert-file", "x"], "must be given together", id="a certificate without a key"),
        pytest.param(["--client-ca-file", "x"], "--client-ca-file needs", id="authorities without a certificate"),
        pytest.param(
            ["--insecure-allow-anybody", "--token-file", "x"],
            "--insecure-allow-anybody cannot be combined",
            id="anybody",
        ),
        pytest.param(["--no-cluster", "--bind"], "--no-cluster cannot be combined with", id="nobody to bind"),
    ],
)
def test_mistakes_are_one_line_and_code_2(arguments: list[str], message: str) -> None:
    code, text, errors = run(*arguments)
    assert (code, text) == (2, "")
    assert message in errors
    assert errors.startswith("error: ") and errors.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "--no-cluster", id="no cluster is configured"),
        pytest.param(
            ["--no-cluster", "--tls-cert-file", "/none.crt", "--tls-private-key-file", "/none.key"],
            "--tls-cert-file /none.crt",
            id="no such certificate",
        ),
    ],
)
def test_what_keeps_it_from_starting_is_told(plugin: str, arguments: list[str], message: str) -> None:
    code, _, errors = run("--plugin", plugin, *arguments)
    assert code == 2
    assert message in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_it_serves_until_it_is_interrupted(plugin: str) -> None:
    command = [sys.executable, "-m", "kubesched", "extender", "--plugin", plugin, "--no-cluster", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stdout is not None
        while "serving plugins on http://127.0.0.1:" not in (line := process.stderr.readline()):
            assert line, "it ended before it served"
        os.kill(process.pid, signal.SIGINT)
        assert process.stderr.read() == ""
        assert load(process.stdout.read(), "printed").extenders
    assert process.returncode == 0
