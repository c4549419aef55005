"""`kubesched.check`: a check file run, and the first one for a cluster."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from kubesched.k8s.loaded_cluster import LoadedCluster
from kubesched.planning.catalogue_files import read_catalogue
from kubesched.planning.check.check_file import CheckError, CheckFile, read_check_file
from kubesched.planning.check.checks import CheckRun, source_paths
from kubesched.planning.check.positions import Positions
from kubesched.planning.check.report import CheckReport
from kubesched.simulator.library import load


def check(path: str | PathLike[str], *, cluster: LoadedCluster | None = None) -> CheckReport:
    """Runs the checks of a file of kind Check: `check("check.yaml").passed`.

    Paths in the file are relative to it. A `cluster` takes the place of the one that the file names, and is needed
    where that is a live one.
    """
    where = Path(path)
    return run_check(read_check_file(where), where, cluster)


def run_check(asked: CheckFile, path: Path, cluster: LoadedCluster | None = None) -> CheckReport:
    directory = path.parent
    if cluster is None:
        if asked.cluster.live is not None:
            raise CheckError(f"{path}: cluster.live: give the cluster, or run kubesched check")
        cluster = load(directory / asked.cluster.file)
    if not cluster.nodes:
        raise CheckError(f"{path}: cluster: there are no nodes in {asked.cluster.file or 'it'}")
    sources = source_paths(asked.change, directory)
    config: Any = str(directory / asked.config) if asked.config else None
    run = CheckRun(
        asked,
        cluster,
        load(*map(Path, sources)),
        load(*map(Path, source_paths(asked.base, directory))),
        Positions(sources, Path.cwd()),
        source=str(path),
        config=config,
        catalogue=read_catalogue(str(directory / asked.catalogue)) if asked.catalogue else None,
    )
    return run.report()


FIRST_CHECK = """\
# Is this change fit to be merged? Run it with: kubesched check {name}
apiVersion: kubesched.dev/v1alpha1
kind: Check
metadata:
  name: before-merge
cluster:
  {cluster}
change:
  - dir: {change}        # the manifests of the pull request, rendered
seeds: 5                  # ties are broken otherwise each time; a yes is a yes for all
checks:
  - name: fits
    fits: {{}}
  - name: room for a rollout
    fits: {{rollingUpdate: true}}
  - name: headroom
    capacity: {{shape: {shape}, atLeast: 1}}
{zones}  - name: requests
    requests: {{cpu: required, memory: required}}
"""
_ZONES = """\
  - name: zones
    outage: {every: zone}
"""


def first_check(cluster: LoadedCluster, cluster_line: str, change: str, name: str) -> str:
    """A check file to begin with: what most would want of this cluster."""
    zone = "topology.kubernetes.io/zone"
    zones = {str((node.get("metadata", {}).get("labels") or {}).get(zone)) for node in _nodes(cluster)} - {"None"}
    return FIRST_CHECK.format(
        name=name, cluster=cluster_line, change=change, shape="500m/1Gi", zones=_ZONES if len(zones) > 1 else ""
    )


def _nodes(cluster: LoadedCluster) -> list[dict[str, Any]]:
    return [cluster.get("node", name) for name in cluster.nodes]
