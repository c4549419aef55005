"""Stands in for kubectl where there is none: the few commands of the tutorial, printed as kubectl prints them.

Tables come from the server, as for kubectl. Run as a program: `python small_kubectl.py get pods -l app=web`.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

_PLACES = {
    "pod": ("/api/v1", "pods", "default"),
    "node": ("/api/v1", "nodes", ""),
    "pvc": ("/api/v1", "persistentvolumeclaims", "default"),
    "pv": ("/api/v1", "persistentvolumes", ""),
    "event": ("/api/v1", "events", "default"),
    "job": ("/apis/batch/v1", "jobs", "default"),
    "podgroup": ("/apis/scheduling.k8s.io/v1alpha2", "podgroups", "default"),
    "statefulset": ("/apis/apps/v1", "statefulsets", "default"),
    "priorityclass": ("/apis/scheduling.k8s.io/v1", "priorityclasses", ""),
    "storageclass": ("/apis/storage.k8s.io/v1", "storageclasses", ""),
}
_KINDS = {"persistentvolumeclaim": "pvc", "persistentvolume": "pv"}
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class SmallKubectl:
    def __init__(self) -> None:
        kubeconfig = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._server = cluster["server"]
        self._token = user["token"]
        self._context = ssl.create_default_context(cadata=authority)

    def call(self, method: str, path: str, body: Any = None, accept: str = "application/json", **query: str) -> Any:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            f"{self._server}{path}?{urllib.parse.urlencode(query)}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Accept": accept, "Content-Type": content, "Authorization": f"Bearer {self._token}"},
        )
        with urllib.request.urlopen(request, context=self._context) as answer:
            return json.load(answer)

    def apply(self, given: argparse.Namespace) -> None:
        for body in _objects(given.filename):
            dry = {"dryRun": "All"} if given.dry_run else {}
            made = self.call("POST", _path(_kind(body["kind"])), body, **dry)
            _say(json.dumps(made) if given.output else f"{_shown(body)[0]}/{_shown(body)[1]} created")

    def delete(self, given: argparse.Namespace) -> None:
        if given.filename:
            found = [(_kind(body["kind"]), *_shown(body)) for body in _objects(given.filename)]
        else:
            kind, *names = given.words
            kind = _kind(kind)
            names = names or [item["metadata"]["name"] for item in self._list(kind, given)]
            found = [(kind, kind, name) for name in names]
        waited = []
        for kind, shown, name in found:
            try:
                self.call("DELETE", _path(kind, name), propagationPolicy="Background")
            except urllib.error.HTTPError as error:
                if error.code != 404 or not given.ignore_not_found:
                    raise
                continue
            namespace = _PLACES[kind][2]
            _say(f'{shown} "{name}" deleted' + (f" from {namespace} namespace" if namespace else ""))
            waited.append(_path(kind, name))
        for path in waited:
            self._wait_gone(path)

    def get(self, given: argparse.Namespace) -> None:
        kind, *names = given.words
        kind = _kind(kind)
        if (given.output or "").startswith("custom-columns="):
            items = [self.call("GET", _path(kind, name)) for name in names] or self._list(kind, given)
            columns = [one.partition(":") for one in given.output.partition("=")[2].split(",")]
            rows = [[_field(item, path) for _, _, path in columns] for item in items]
            _print([name for name, _, _ in columns], rows, given.no_headers)
            return
        table = self.call("GET", _path(kind, *names), accept=_TABLE, **_options(given))
        wanted = [i for i, column in enumerate(table["columnDefinitions"]) if column["priority"] == 0]
        heads = [table["columnDefinitions"][i]["name"].upper() for i in wanted]
        rows = [[str(row["cells"][i]) for i in wanted] for row in table["rows"]]
        if given.label_columns:
            heads.append(given.label_columns.rpartition("/")[2].upper())
            for cells, row in zip(rows, table["rows"], strict=True):
                cells.append(row["object"]["metadata"]["labels"][given.label_columns])
        _print(heads, rows, given.no_headers)

    def taint(self, given: argparse.Namespace) -> None:
        _, name, text = given.words
        taints = self.call("GET", _path("node", name))["spec"].get("taints", [])
        if text.endswith("-"):
            taints = [taint for taint in taints if taint["key"] != text[:-1]]
        else:
            key, value, effect = re.split("[=:]", text)
            taints.append({"key": key, "value": value, "effect": effect})
        self.call("PATCH", _path("node", name), {"spec": {"taints": taints}})
        _say(f"node/{name} {'untainted' if text.endswith('-') else 'tainted'}")

    def label(self, given: argparse.Namespace) -> None:
        _, *names, text = given.words
        key, _, value = text.removesuffix("-").partition("=")
        for name in names:
            self.call("PATCH", _path("node", name), {"metadata": {"labels": {key: value or None}}})
            _say(f"node/{name} {'labeled' if value else 'unlabeled'}")

    def cordon(self, given: argparse.Namespace) -> None:
        self._set_unschedulable(given.words[0], True)

    def uncordon(self, given: argparse.Namespace) -> None:
        self._set_unschedulable(given.words[0], False)

    def scale(self, given: argparse.Namespace) -> None:
        kind, name = given.words
        self.call("PATCH", _path(kind, name), {"spec": {"replicas": given.replicas}})
        _say(f"statefulset.apps/{name} scaled")

    def _set_unschedulable(self, name: str, is_cordoned: bool) -> None:
        self.call("PATCH", _path("node", name), {"spec": {"unschedulable": is_cordoned or None}})
        _say(f"node/{name} {'cordoned' if is_cordoned else 'uncordoned'}")

    def _list(self, kind: str, given: argparse.Namespace) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.call("GET", _path(kind), **_options(given))["items"]
        return items

    def _wait_gone(self, path: str) -> None:
        while True:
            try:
                self.call("GET", path)
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return
                raise
            time.sleep(0.1)


def _objects(filename: str) -> list[dict[str, Any]]:
    path = Path(filename)
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return [body for file in files for body in yaml.safe_load_all(file.read_text())]


def _kind(word: str) -> str:
    word = word.lower()
    return _KINDS.get(word, word if word in _PLACES else word.removesuffix("s"))


def _path(kind: str, name: str = "") -> str:
    group, plural, namespace = _PLACES[kind]
    middle = f"/namespaces/{namespace}" if namespace else ""
    return f"{group}{middle}/{plural}" + (f"/{name}" if name else "")


def _shown(body: dict[str, Any]) -> tuple[str, str]:
    group, _, version = body["apiVersion"].rpartition("/")
    return body["kind"].lower() + (f".{group}" if group and version else ""), body["metadata"]["name"]


def _options(given: argparse.Namespace) -> dict[str, str]:
    named = {"labelSelector": given.selector, "fieldSelector": given.field_selector}
    return {name: value for name, value in named.items() if value}


def _field(item: Any, path: str) -> str:
    for part in re.findall(r"\w+", path):
        item = item[int(part)] if isinstance(item, list) else (item or {}).get(part)
    return f"[{' '.join(item)}]" if isinstance(item, list) else "<none>" if item is None else str(item)


def _print(heads: list[str], rows: list[list[str]], has_no_heads: bool) -> None:
    lines = rows if has_no_heads else [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        _say("   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["apply", "delete", "get", "taint", "label", "cordon", "uncordon", "scale"])
    parser.add_argument("words", nargs="*")
    parser.add_argument("-f", "--filename")
    parser.add_argument("-l", "--selector")
    parser.add_argument("-o", "--output")
    parser.add_argument("-L", "--label-columns")
    parser.add_argument("--field-selector")
    parser.add_argument("--dry-run")
    parser.add_argument("--no-headers", action="store_true")
    parser.add_argument("--ignore-not-found", action="store_true")
    parser.add_argument("--replicas", type=int)
    given = parser.parse_intermixed_args()
    getattr(SmallKubectl(), given.command)(given)


if __name__ == "__main__":
    main()
