"""The stock kubectl against the server, over TLS: what people do first."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kubesched.playground.apiserver.server import ApiServer, ServerSettings

KUBECTL = shutil.which("kubectl")
_MANIFEST = Path(__file__).parents[3] / "data" / "manifests" / "argo-cd-ha.yaml"
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

Kubectl = Callable[..., Awaitable[str]]


async def _with_kubectl(folder: Path, body: Callable[[Kubectl], Awaitable[None]]) -> None:
    server = ApiServer(ServerSettings())
    await server.start()
    config = folder / "kubeconfig"
    server.write_kubeconfig(config)
    assert config.stat().st_mode & 0o777 == 0o600
    environment = {**os.environ, "KUBECONFIG": str(config), "HOME": str(folder)}

    async def kubectl(*arguments: str, stdin: str = "") -> str:
        assert KUBECTL is not None
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            KUBECTL, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        output, errors = await process.communicate(stdin.encode())
        return output.decode() + errors.decode()

    try:
        await body(kubectl)
    finally:
        await server.stop()


def test_kubectl_creates_shows_changes_and_deletes(tmp_path: Path) -> None:
    async def body(kubectl: Kubectl) -> None:
        assert await kubectl("run", "p", "--image=x") == "pod/p created\n"
        shown = await kubectl("get", "pods", "-o", "wide")
        assert shown.splitlines()[0].split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert "Pending" in shown
        assert await kubectl("label", "pod", "p", "a=b") == "pod/p labeled\n"
        assert await kubectl("get", "pods", "-l", "a=b", "-o", "name") == "pod/p\n"
        assert 'pod "p" deleted' in await kubectl("delete", "pod", "p")
        assert 'pods "p" not found' in await kubectl("get", "pod", "p")

    asyncio.run(_with_kubectl(tmp_path, body))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param("create configmap c --from-literal=a=b", "configmap/c created", id="a config map"),
        pytest.param("create namespace n", "namespace/n created", id="a namespace"),
        pytest.param("create deployment d --image=x", "deployment.apps/d created", id="a deployment"),
        pytest.param(
            "create priorityclass high --value=5", "priorityclass.scheduling.k8s.io/high created", id="a class"
        ),
        pytest.param("create quota q --hard=pods=3", "resourcequota/q created", id="a quota"),
        pytest.param("auth can-i create pods", "yes", id="a question about rights"),
        pytest.param("auth whoami", "admin", id="a question about oneself"),
    ],
)
def test_kubectl_sends_protobuf_and_is_understood(tmp_path: Path, arguments: str, said: str) -> None:
    async def body(kubectl: Kubectl) -> None:
        assert said in await kubectl(*arguments.split())

    asyncio.run(_with_kubectl(tmp_path, body))


def test_kubectl_cordons_taints_and_scales(tmp_path: Path) -> None:
    async def body(kubectl: Kubectl) -> None:
        node = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}'
        assert "node/n1 created" in await kubectl("create", "--validate=false", "-f", "-", stdin=node)
        assert "cordoned" in await kubectl("cordon", "n1")
        assert "SchedulingDisabled" in await kubectl("get", "nodes")
        assert "tainted" in await kubectl("taint", "node", "n1", "a=b:NoSchedule")
        await kubectl("create", "deployment", "d", "--image=x")
        assert "scaled" in await kubectl("scale", "deployment", "d", "--replicas=3")
        replicas = await kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}")
        assert replicas == "3"

    asyncio.run(_with_kubectl(tmp_path, body))


_LIST = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: c}
  data: {a: b}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: d}
  spec:
    selector: {matchLabels: {a: b}}
    template:
      metadata: {labels: {a: b}}
      spec: {containers: [{name: c, image: x}]}
"""


def test_kubectl_creates_applies_and_takes_back_a_list(tmp_path: Path) -> None:
    async def body(kubectl: Kubectl) -> None:
        created = "configmap/c created\ndeployment.apps/d created\n"
        assert await kubectl("create", "-f", "-", stdin=_LIST) == created
        assert 'deployment.apps "d" deleted' in await kubectl("delete", "-f", "-", stdin=_LIST)
        assert await kubectl("apply", "-f", "-", stdin=_LIST) == created
        written = await kubectl("get", "configmaps,deployments", "-o", "yaml")
        assert "kind: List" in written
        changed = written.replace("image: x", "image: other")
        applied = await kubectl("apply", "-f", "-", stdin=changed)
        assert applied == "configmap/c configured\ndeployment.apps/d configured\n"
        assert await kubectl("diff", "-f", "-", stdin=changed) == ""
        refused = await kubectl("apply", "-f", "-", stdin=_LIST.replace("data: {a: b}", "dat: {a: b}"))
        assert 'unknown field "dat"' in refused

    asyncio.run(_with_kubectl(tmp_path, body))


_EDITOR = r"""#!/bin/sh
sed -i 's/^\( *\)labels:$/\1labels:\n\1  edited: "yes"/' "$1"
"""


def test_kubectl_applies_changes_compares_edits_and_deletes_manifests_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(_EDITOR)
    editor.chmod(0o755)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))

    async def body(kubectl: Kubectl) -> None:
        path = _MANIFEST
        text = path.read_text()
        applied = (await kubectl("apply", "-f", str(path))).splitlines()
        assert applied, path.name
        assert all(line.endswith(" created") for line in applied), applied
        assert await kubectl("diff", "-f", str(path)) == "", path.name
        again = (await kubectl("apply", "-f", str(path))).splitlines()
        assert all(line.endswith((" unchanged", " configured")) for line in again), again
        changed = text.replace("  labels:\n", "  labels:\n    changed: very\n", 1)
        difference = await kubectl("diff", "-f", "-", stdin=changed)
        assert "+    changed: very" in difference, path.name
        assert " configured" in await kubectl("apply", "-f", "-", stdin=changed), path.name
        assert " edited" in await kubectl("edit", "-f", str(path)), path.name
        assert "yes" in await kubectl("get", "-f", str(path), "-L", "edited"), path.name
        gone = (await kubectl("delete", "-f", str(path), "--now")).splitlines()
        assert sum("deleted" in line for line in gone) == len(applied), gone

    asyncio.run(_with_kubectl(tmp_path, body))
