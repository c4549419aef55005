"""Writes what kubesched is made of: a CycloneDX list of components, a table of their licences, and the licences' texts.

`make sbom` puts them into build/sbom. What counts is requirements-run.lock, which the image is built from; what each
package says of itself comes from its installed metadata, and must be of the locked version. Nothing is asked of any
server, and the same lock gives the same bytes. Exit code 1 when a package is not installed as locked, or says nothing
that can be understood about its licence.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata as metadata
import json
import re
import sys
import tomllib
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
_PIN = re.compile(r"^([a-z0-9._-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)
_SPDX = re.compile(r"[A-Za-z0-9.+-]+( (AND|OR|WITH) [A-Za-z0-9.+-]+)*")
_AS_SPDX = {
    "Apache 2.0": "Apache-2.0",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
_SOME_BSD = "License :: OSI Approved :: BSD License"
_LICENCE_FILE = re.compile(r"(^|/)(LICEN[CS]E|COPYING|NOTICE)[^/]*$", re.IGNORECASE)


class SbomError(Exception):
    """The list cannot be made; the text names the package."""


@dataclass(frozen=True)
class Component:
    """A package as locked, with what it says of itself."""

    name: str
    version: str
    hashes: tuple[str, ...]
    licence: str
    needs: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def components(lock: Path) -> list[Component]:
    """All packages of the lock, by name. Raises SbomError."""
    pins = _PIN.findall(lock.read_text())
    return [_component(name, version, tuple(re.findall(r"[0-9a-f]{64}", hashes))) for name, version, hashes in pins]


def _component(name: str, version: str, hashes: tuple[str, ...]) -> Component:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise SbomError(f"{name}: not installed; run `make setup`") from None
    if found.version != version:
        raise SbomError(f"{name}: {found.version} is installed, {version} is locked; run `make setup`")
    return Component(name, version, hashes, licence_of(found), _needs(found), _texts(found))


def licence_of(package: metadata.Distribution) -> str:
    """An SPDX expression. Raises SbomError."""
    said = package.metadata
    classifiers: list[str] = [one for one in said.get_all("Classifier") or () if one.startswith("License ::")]
    given: list[str] = [one for name in ("License-Expression", "License") for one in said.get_all(name) or ()]
    for text in (*given, *classifiers):
        known = _AS_SPDX.get(text, text)
        if known and _SPDX.fullmatch(known):
            return known
    if _SOME_BSD in classifiers:
        return _bsd_of(" ".join(text for _, text in _texts(package)))
    raise SbomError(f"{said['Name']}: says nothing about its licence that can be understood")


def _bsd_of(text: str) -> str:
    """Which of the BSD licences a text is; the third condition is the one about names."""
    if "Redistributions in binary form must reproduce" not in " ".join(text.split()):
        raise SbomError("a licence that calls itself BSD has another text")
    return "BSD-3-Clause" if "Neither the name" in " ".join(text.split()) else "BSD-2-Clause"


def _needs(package: metadata.Distribution) -> tuple[str, ...]:
    wishes = [Requirement(text) for text in package.requires or ()]
    met = (wish.name for wish in wishes if wish.marker is None or wish.marker.evaluate({"extra": ""}))
    return tuple(sorted({re.sub(r"[-_.]+", "-", name).lower() for name in met}))


def _texts(package: metadata.Distribution) -> tuple[tuple[str, str], ...]:
    files = [file for file in package.files or () if _LICENCE_FILE.search(str(file)) and file.suffix != ".py"]
    return tuple((file.name, file.read_text(encoding="utf-8")) for file in files)


def cyclone_dx(found: list[Component], project: dict[str, Any], lock: Path) -> dict[str, Any]:
    """The list as CycloneDX 1.5."""
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    known = {component.name: component.purl for component in found}
    extras = (wishes for name, wishes in project["optional-dependencies"].items() if name != "dev")
    asked = (*project["dependencies"], *(wish for wishes in extras for wish in wishes))
    direct = {re.sub(r"[-_.]+", "-", Requirement(text).name).lower() for text in asked}
    graph = [{"ref": own, "dependsOn": sorted(known[name] for name in direct if name in known)}]
    graph += [
        {"ref": one.purl, "dependsOn": sorted(known[name] for name in one.needs if name in known)} for one in found
    ]
    digest = hashlib.sha256(lock.read_bytes() + own.encode()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": one.purl,
                "name": one.name,
                "version": one.version,
                "purl": one.purl,
                "licenses": [{"expression": one.licence}],
                "properties": [{"name": "kubesched:locked-file", "value": f"sha256:{value}"} for value in one.hashes],
            }
            for one in found
        ],
        "dependencies": graph,
    }


def licence_table(found: list[Component], project: dict[str, Any]) -> str:
    rows = [f"| {one.name} | {one.version} | {one.licence} |" for one in found]
    head = f"# What {project['name']} {project['version']} ({project['license']}) brings along\n\n"
    return head + "| package | version | licence |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def licence_texts(found: list[Component]) -> str:
    parts = [
        f"{'=' * 100}\n{one.name} {one.version}: {name}\n\n{text.rstrip()}\n"
        for one in found
        for name, text in one.texts
    ]
    return "\n".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes what kubesched is made of.")
    parser.add_argument("--lock", type=Path, default=ROOT / "requirements-run.lock", metavar="FILE")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "sbom", metavar="DIR")
    options = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    try:
        found = components(options.lock)
    except SbomError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    options.output.mkdir(parents=True, exist_ok=True)
    listed = json.dumps(cyclone_dx(found, project, options.lock), indent=2) + "\n"
    for name, text in (
        ("kubesched.cdx.json", listed),
        ("licences.md", licence_table(found, project)),
        ("licence-texts.txt", licence_texts(found)),
    ):
        (options.output / name).write_text(text)
    print(f"{len(found)} packages: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
