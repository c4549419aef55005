"""The file with the rules: kind `Check`, API version `kubesched.dev/v1alpha1`. Errors name file and field."""

from __future__ import annotations

from pathlib import Path

import msgspec
import yaml

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import read_file
from kubesched.k8s.model.kubernetes_yaml import load_documents, yaml_problem
from kubesched.k8s.model.partial_reading import plain_problem
from kubesched.planning.headroom import SPARE_ONE
from kubesched.simulator.premises import IGNORED, REPLICAS

API_VERSION = "kubesched.dev/v1alpha1"
_IGNORED = tuple(one for one in IGNORED if one != "pending")


class CheckError(KubeschedError, ValueError):
    """The file cannot be read or understood; says where."""


class _Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A misspelt field is an error."""


class Source(_Strict, frozen=True):
    """Manifests: a file, or a directory with all below it."""

    file: str = ""
    dir: str = ""


class ClusterSource(_Strict, frozen=True):
    """A dump, or a context of the kubeconfig."""

    file: str = ""
    live: str | None = None


class CheckMetadata(_Strict, frozen=True):
    name: str = ""


class FitsRule(_Strict, frozen=True):
    """Every pod of the change gets a node, and nobody else loses theirs."""

    rolling_update: bool = False
    """Also while all changed Deployments roll out at once: with the pods that `maxSurge` allows beside them."""


class CapacityRule(_Strict, frozen=True):
    """So many more pods still fit after the change."""

    at_least: int
    shape: str = ""
    pod: str = ""
    by: str = ""
    """`zone`, `pool` or a label: in each group by itself."""


class OutageRule(_Strict, frozen=True):
    """After the change, the cluster survives the loss of each zone, pool or node."""

    every: str = "zone"
    priority_at_least: int | None = None
    gone: bool = False


class CostRule(_Strict, frozen=True):
    """What the pods' share of the nodes costs grows by no more than this: `+5%`, or an amount per month."""

    at_most: str | float


class RequestsRule(_Strict, frozen=True):
    """Every container of the change requests these."""

    cpu: str = ""
    memory: str = ""


class UpgradeRule(_Strict, frozen=True):
    """After the change, a rolling upgrade of the nodes finishes."""

    pool: str | None = None
    preset: str | None = None
    max_surge: int | str | None = None


class Rule(_Strict, frozen=True):
    """One check: a name, and exactly one of the others."""

    name: str = ""
    fits: FitsRule | None = None
    capacity: CapacityRule | None = None
    outage: OutageRule | None = None
    cost: CostRule | None = None
    requests: RequestsRule | None = None
    upgrade: UpgradeRule | None = None

    @property
    def kinds(self) -> list[str]:
        return [kind for kind in RULES if getattr(self, kind) is not None]


RULES = ("fits", "capacity", "outage", "cost", "requests", "upgrade")


class CheckFile(_Strict, frozen=True):
    api_version: str
    kind: str
    cluster: ClusterSource
    checks: tuple[Rule, ...]
    metadata: CheckMetadata = CheckMetadata()
    change: tuple[Source, ...] = ()
    base: tuple[Source, ...] = ()
    """The same manifests before the change, where they are not in the cluster yet, or not as they were rendered."""
    seeds: int = 5
    keep: tuple[str, ...] = ()
    """Room that stays free: `20x500m/1Gi`, also with `@zone`, or files with CapacityBuffers."""
    replicas: str = "current"
    """Of autoscaled workloads: `current`, or the `min` or `max` of their HorizontalPodAutoscalers."""
    ignore: tuple[str, ...] = ()
    """What is left out: `daemons`, `static`, `budgets`. What waits without the change never counts."""
    config: str = ""
    catalogue: str = ""


def read_check_file(path: Path) -> CheckFile:
    """Raises CheckError."""
    data = read_file(str(path))
    try:
        documents = [document for document in load_documents(data) if document is not None]
    except yaml.YAMLError as problem:
        raise CheckError(f"{path}: {yaml_problem(problem, data)}") from None
    if len(documents) != 1:
        raise CheckError(f"{path}: one document of kind Check is expected, not {len(documents)}")
    document = documents[0]
    if not isinstance(document, dict) or (document.get("apiVersion"), document.get("kind")) != (API_VERSION, "Check"):
        raise CheckError(f"{path}: apiVersion: {API_VERSION} and kind: Check are expected")
    try:
        found = msgspec.convert(document, CheckFile)
    except msgspec.ValidationError as problem:
        raise CheckError(f"{path}: {plain_problem(problem)}") from None
    _validate(path, found)
    return found


def _validate(path: Path, found: CheckFile) -> None:
    if bool(found.cluster.file) == (found.cluster.live is not None):
        raise CheckError(f"{path}: cluster: one of file and live is expected")
    if found.seeds < 1:
        raise CheckError(f"{path}: seeds: at least 1 is expected")
    if found.replicas not in REPLICAS:
        raise CheckError(f"{path}: replicas: one of {', '.join(REPLICAS)} is expected")
    for what in found.ignore:
        if what not in _IGNORED:
            raise CheckError(f"{path}: ignore: {what} is none of {', '.join(_IGNORED)}")
    for text in found.keep:
        if text.startswith(SPARE_ONE):
            raise CheckError(f"{path}: keep: {text} is asked by a check with outage: {{every: zone}}")
    if not found.checks:
        raise CheckError(f"{path}: checks: at least one is expected")
    for name, sources in (("change", found.change), ("base", found.base)):
        for index, source in enumerate(sources):
            if bool(source.file) == bool(source.dir):
                raise CheckError(f"{path}: {name}[{index}]: one of file and dir is expected")
    names: set[str] = set()
    for index, rule in enumerate(found.checks):
        if rule.name in names:
            raise CheckError(f'{path}: checks[{index}].name: there is a check "{rule.name}" already')
        names.add(rule.name)
        at = f"{path}: checks[{index}]"
        if len(rule.kinds) != 1:
            raise CheckError(f"{at}: exactly one of {', '.join(RULES)} is expected")
        if rule.capacity is not None and bool(rule.capacity.shape) == bool(rule.capacity.pod):
            raise CheckError(f"{at}.capacity: one of shape and pod is expected")
        if rule.requests is not None:
            for name in ("cpu", "memory"):
                if getattr(rule.requests, name) not in ("", "required"):
                    raise CheckError(f'{at}.requests.{name}: "required" is expected')
