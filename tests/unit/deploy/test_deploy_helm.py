"""The chart makes the objects that kustomize makes, holds to its schema, and refuses what would be unsafe.

Rendered by `helm_rendering` here; where helm is installed, it must come to the same.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_files import DEPLOY, ROOT, Manifest, container_of, only, read_one
from helm_rendering import Chart, TemplateError
from schema_checking import violations

from kubesched.live.options.command import parse_flags
from kubesched.live.options.read import read_options
from kubesched.scheduler.config import load

FOLDER = DEPLOY / "helm" / "kubesched"
CHART = Chart(FOLDER)
REPLACE: dict[str, Any] = read_one(FOLDER / "values-replace.yaml")
SCHEMA: dict[str, Any] = json.loads((FOLDER / "values.schema.json").read_text())
SERVING = {"servingCertificate": {"secretName": "kubesched-serving"}}
MONITORED = {**SERVING, "metrics": {"serviceMonitor": {"enabled": True}}}
EGRESS = {"networkPolicy": {"egress": {"enabled": True}}}
GROUPS = {"podGroups": {"enabled": True}}
PLUGINS = {"plugins": {"enabled": True, "configMap": "my-plugins", "files": ["disk_tier.py", "racks.py"]}}
KUBECTL = shutil.which("kubectl")
HELM = shutil.which("helm")
CASES = {
    "defaults": {},
    "replace": REPLACE,
    "monitored": MONITORED,
    "egress": EGRESS,
    "plugins": PLUGINS,
    "groups": GROUPS,
    "all": {
        **REPLACE,
        **MONITORED,
        **EGRESS,
        **PLUGINS,
        "config": {"parallelism": 8},
        "extraArgs": ["--logging-format=json"],
    },
}


def _kustomized(overlay: str, tmp_path: Path, with_components: bool) -> list[Manifest]:
    copy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, copy)
    file = copy / "overlays" / overlay / "kustomization.yaml"
    if with_components:
        lines = file.read_text().replace("# components:", "components:").replace("#   - ../", "  - ../")
        file.write_text(lines)
    command = [KUBECTL or "kubectl", "kustomize", str(file.parent)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 0, outcome.stderr
    return list(yaml.safe_load_all(outcome.stdout))


def _comparable(manifests: list[Manifest]) -> dict[tuple[str, str], Manifest]:
    """Without what must differ: how a changed configuration rolls the pods, and how it is laid out."""
    found: dict[tuple[str, str], Manifest] = {}
    for manifest in json.loads(json.dumps(manifests)):
        if manifest["kind"] == "ConfigMap":
            manifest["metadata"]["name"] = "kubesched-config"
            manifest["data"] = {name: yaml.safe_load(text) for name, text in manifest["data"].items()}
        if manifest["kind"] == "Deployment":
            template = manifest["spec"]["template"]
            template["metadata"].pop("annotations", None)
            template["spec"]["volumes"][0]["configMap"]["name"] = "kubesched-config"
        found[manifest["kind"], manifest["metadata"]["name"]] = manifest
    return found


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed, so overlays are not built")
@pytest.mark.parametrize(
    ("overlay", "with_components", "values"),
    [
        pytest.param("beside", False, {}, id="beside"),
        pytest.param("replace", False, REPLACE, id="replace"),
        pytest.param("beside", True, {**MONITORED, **EGRESS, **GROUPS}, id="beside with components"),
        pytest.param("replace", True, {**REPLACE, **MONITORED, **EGRESS, **GROUPS}, id="replace with components"),
    ],
)
def test_the_chart_makes_what_kustomize_makes(
    overlay: str, with_components: bool, values: dict[str, Any], tmp_path: Path
) -> None:
    assert _comparable(CHART.objects(values)) == _comparable(_kustomized(overlay, tmp_path, with_components))


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_values_hold_to_the_schema(values: dict[str, Any]) -> None:
    assert list(violations(CHART.values(values), SCHEMA)) == []


def test_every_value_is_in_the_schema_and_has_a_default() -> None:
    properties = SCHEMA["properties"]
    assert set(CHART.defaults) == set(properties) - {"nameOverride", "global"}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"plugins": {"enabled": True}}, id="plugins from nowhere"),
        pytest.param({"plugins": {"enabled": True, "configMap": "a", "files": ["../x.py"]}}, id="a file elsewhere"),
        pytest.param({"image": {"digest": "sha256:abc"}}, id="half a digest"),
        pytest.param({"replicas": 0}, id="no copy"),
        pytest.param({"profiles": []}, id="no profile"),
        pytest.param({"config": {"pluginPaths": ["/x"]}}, id="plugins by the back door"),
        pytest.param({"config": {"leaderElection": {}}}, id="another lease"),
        pytest.param({"extraArgs": ["; rm"]}, id="no flag"),
        pytest.param({"replcas": 2}, id="a value that is misspelt"),
    ],
)
def test_values_that_make_no_sense_are_refused(values: dict[str, Any]) -> None:
    assert list(violations(CHART.values(values), SCHEMA))


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_the_scheduler_takes_its_flags_and_configuration(values: dict[str, Any], tmp_path: Path) -> None:
    objects = CHART.objects(values)
    text = only(objects, "ConfigMap")["data"]["config.yaml"]
    config = load(text, "config.yaml")
    (role,) = [one for one in objects if one["kind"] == "Role"]
    assert role["rules"][1]["resourceNames"] == [config.leader_election.resource_name]
    assert role["metadata"]["namespace"] == config.leader_election.resource_namespace
    file = tmp_path / "config.yaml"
    file.write_text(text)
    for name in ("disk_tier.py", "racks.py"):
        (tmp_path / name).write_text(
            "class P:\n    name = 'P" + name[0] + "'\n    def filter_node(self, cycle, pod, node): ...\n"
        )
    arguments = [
        argument.replace("/etc/kubesched-plugins", str(tmp_path)).replace("/etc/kubesched/config.yaml", str(file))
        for argument in container_of(only(objects, "Deployment"))["args"]
        if not argument.startswith("--tls-")
    ]
    assert read_options(parse_flags(arguments)).configuration.profiles


def test_plugins_are_off_and_loud() -> None:
    assert CHART.defaults["plugins"]["enabled"] is False
    assert "--plugin" not in str(only(CHART.objects(), "Deployment"))
    values = CHART.values(PLUGINS)
    assert "WARNING: plugins from the ConfigMap my-plugins run inside the scheduler." in CHART.text("NOTES.txt", values)
    assert "WARNING" not in CHART.text("NOTES.txt", CHART.values())
    container = container_of(only(CHART.objects(PLUGINS), "Deployment"))
    assert "--plugin=/etc/kubesched-plugins/disk_tier.py" in container["args"]
    assert {"name": "plugins", "mountPath": "/etc/kubesched-plugins", "readOnly": True} in container["volumeMounts"]


def test_metrics_are_scraped_from_whom_they_should_be_or_not_at_all() -> None:
    with pytest.raises(TemplateError, match=r"servingCertificate\.secretName"):
        CHART.objects({"metrics": {"serviceMonitor": {"enabled": True}}})
    monitor = only(CHART.objects(MONITORED), "ServiceMonitor")
    for endpoint in monitor["spec"]["endpoints"]:
        assert endpoint["tlsConfig"]["serverName"] == "kubesched.kube-system.svc"
        assert "insecureSkipVerify" not in endpoint["tlsConfig"]


def test_a_digest_goes_before_the_tag() -> None:
    digest = "sha256:" + "a" * 64
    container = container_of(only(CHART.objects({"image": {"digest": digest}}), "Deployment"))
    assert container["image"] == f"registry.example.com/kubesched@{digest}"
    assert "can be moved" in CHART.text("NOTES.txt", CHART.values())


def test_another_release_has_other_names_everywhere() -> None:
    objects = CHART.objects(release="second", namespace="schedulers")
    for one in objects:
        assert one["metadata"]["name"].startswith("second")
        assert one["metadata"]["labels"]["app.kubernetes.io/name"] == "second"
    assert only(objects, "Deployment")["metadata"]["namespace"] == "schedulers"
    assert {subject["namespace"] for one in objects for subject in one.get("subjects", ())} == {"schedulers"}


def test_a_changed_configuration_rolls_the_pods() -> None:
    def checksum(values: dict[str, Any]) -> str:
        return str(only(CHART.objects(values), "Deployment")["spec"]["template"]["metadata"]["annotations"])

    assert checksum({}) != checksum({"config": {"parallelism": 8}})


def test_the_chart_is_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = read_one(FOLDER / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (version, version)


@pytest.mark.skipif(HELM is None, reason="helm is not installed")
@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_helm_comes_to_the_same(values: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [
        HELM or "helm",
        "template",
        "kubesched",
        str(FOLDER),
        "--namespace",
        "kube-system",
        "--values",
        str(file),
    ]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert outcome.returncode == 0, outcome.stderr
    rendered = [document for document in yaml.safe_load_all(outcome.stdout) if document]
    assert _comparable(rendered) == _comparable(CHART.objects(values))
