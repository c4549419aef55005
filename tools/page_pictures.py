"""Takes the pictures of the web page that the docs show, in a browser, on a playground of its own.

The playground has three zones of two nodes, the scenario "GPU shortage", and at last a gang. Pictures are the same from
run to run but for times and generated names.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.headless_browser import CHROMIUM, NOTICE, OpenPage, open_page
from kubesched.k8s.model.core import Pod
from kubesched.playground.apiserver.server import ServerSettings
from kubesched.playground.hollow_nodes.fleet import NodeShape
from kubesched.playground.hollow_nodes.pod_plays import Delays
from kubesched.playground.manifests import read_documents
from kubesched.playground.playground import Playground, PlaygroundSettings
from kubesched.playground.web.workbench import scenario_text

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDE, PHONE = (1440, 900), (390, 844)
_SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default}
spec:
  replicas: 18
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: main, image: nginx, resources: {requests: {cpu: 1500m, memory: 3Gi}}}]
"""
_N_PODS = 18 + 4 + 1
_GANG = "playground-gang"
_WIDE_GANG = Path(__file__).parents[1] / "examples" / "gang-scheduling" / "wide.yaml"
_GATES = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
_PENDING = "location.hash = 'pod=gpu-shortage/training'"


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = PlaygroundSettings(
            ServerSettings(),
            Path(folder) / "kubeconfig",
            nodes=_racked(NodeShape().bodies(6)),
            feature_gates=(_GATES,),
            delays=Delays(0.0, 0.0),
            has_server_process=False,
        )
        async with Playground(settings) as playground:
            await playground.put_in(read_documents(scenario_text("gpu-shortage").encode(), "scenario"))
            await playground.put_in(read_documents(_SHOP.encode(), "shop"))
            page = await playground.start_page()
            await _all_run(playground)
            for name, size, dark, script, ready in _SHOTS:
                if name == _GANG:
                    gang = _WIDE_GANG.read_bytes().replace(b'cpu: "4"', b'cpu: "3"')  # what the shop left
                    await playground.put_in(read_documents(gang, "gang"))
                async with open_page(page.url, Path(folder) / name, size=size, dark=dark) as browser:
                    await browser.wait_for("document.querySelector('#link').textContent === 'live'")
                    await browser.evaluate(f"{script}; true")
                    await browser.wait_for(ready)
                    await _settle(browser)
                    await browser.screenshot(PICTURES / f"{name}.png")


def _racked(nodes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found = list(nodes)
    for number, node in enumerate(found):
        node["metadata"].setdefault("labels", {})["rack"] = "abb"[number % 3]
    return found


async def _all_run(playground: Playground) -> None:
    while True:
        pods = playground.controllers.view.of(Pod).values()
        if sum(pod.status.phase == "Running" for pod in pods) == _N_PODS - 1:
            return
        await asyncio.sleep(0.1)


async def _settle(browser: OpenPage) -> None:
    await browser.evaluate("new Promise((resolve) => setTimeout(resolve, 800))")


_WHAT_IF = """location.hash = 'whatif='; setTimeout(() => {
  const text = document.querySelector('#manifest');
  text.value = text.value.replace('cpu: "1"', 'cpu: "9"'); text.rows = 12;
  document.querySelector('#detail .main').click(); }, 200)"""
_SHOTS = (
    ("playground", WIDE, False, "1", "document.querySelectorAll('.tile').length === 10"),
    ("playground-pod", WIDE, False, _PENDING, "document.querySelector('.coloured .tile')"),
    ("playground-dark", WIDE, True, _WHAT_IF, "document.querySelector('.coloured .tile')"),
    ("playground-phone", PHONE, False, _PENDING, "document.querySelector('#explanation .cause')"),
    (_GANG, WIDE, True, "location.hash = 'group=default/wide'", "document.querySelector('#detail .cause')"),
)

if __name__ == "__main__":
    if CHROMIUM is None:
        sys.exit(NOTICE)
    asyncio.run(main())
