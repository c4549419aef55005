"""`kubesched.explain`: about a pod, a workload, a namespace or a node.

The command line and the library answer with the same functions. Next: `kubesched.explanation.targets` for the names of
what may be asked about, `expansion` for workloads without pods, `kubesched.explanation`, which does the work.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, overload

from kubesched.explanation.answer import Explanation
from kubesched.explanation.explain import NotExplainableError, build_cluster, explain_emulated, explain_pod
from kubesched.explanation.group_trees import GroupTreeExplanation
from kubesched.explanation.overview import NodeOverview, OwnedPods, PodsOverview, explain_node, explain_pods
from kubesched.explanation.placement import NodeAnswer, why_not_node
from kubesched.explanation.pod_groups import PodGroupExplanation, WaitingGroups, explain_composite, explain_group
from kubesched.explanation.targets import AskedAbout, AskedKind, read_target
from kubesched.framework.handle import Registry
from kubesched.k8s.errors import KubeschedWarning
from kubesched.k8s.loaded_cluster import Document, Objects, read_objects
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import CLUSTER_KINDS, KINDS, Kinds, Manifests
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import assemble, check_no_emulation, plugins_from_classes
from kubesched.simulator.expansion import daemons_unmade, find_workload, n_wanted, unmade_pods, why_unmade, with_one_pod
from kubesched.simulator.group_members import unmade_members

Answer = Explanation | PodsOverview | NodeOverview | NodeAnswer | PodGroupExplanation | GroupTreeExplanation
"""All have `headline`, `to_dict()` and `to_html()`, and a text."""


@overload
def explain(
    objects: Objects,
    what: None = None,
    config: Document = None,
    *,
    node: None = None,
    namespace: str | None = None,
    policy: Document = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> PodsOverview: ...


@overload
def explain(
    objects: Objects,
    what: str,
    config: Document = None,
    *,
    node: str,
    namespace: str | None = None,
    policy: Document = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> NodeAnswer: ...


@overload
def explain(
    objects: Objects,
    what: str | None = None,
    config: Document = None,
    *,
    node: str | None = None,
    namespace: str | None = None,
    policy: Document = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> Explanation | Any: ...


def explain(
    objects: Objects,
    what: str | None = None,
    config: Document = None,
    *,
    node: str | None = None,
    namespace: str | None = None,
    policy: Document = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> Answer:
    """Explains a pod on a cluster, a workload, a namespace or a node, under a KubeSchedulerConfiguration.

    The cluster is what `kubesched.load` gave, or what it takes: a path, a YAML text, a manifest as a dictionary, or
    several of them. A configuration is a dictionary, a YAML text or a path.

    `what` is named as for kubectl, in `namespace` unless it names one itself; without it, all pending pods are grouped
    by cause, of the namespace or of all of them, in a `PodsOverview`.

    - `"shop/web-1"`, `"pod/web-1"`: why a pod is pending, or why it is where it is; an `Explanation`. With `node`, why
      not there, or why there; a `NodeAnswer`.
    - `"shop/deployment/web"`, `"job/x"`: what stands in the way of a workload's pods, grouped by cause; a
      `PodsOverview`. Of a workload without pods, one is explained as its controller would create it now.
    - `"namespace/shop"`: the same of all that waits in a namespace; a `PodsOverview`.
    - `"node/a"`: which pending pods could not come to a node, and why; a `NodeOverview`.
    - `"ml/podgroup/training"`: why a pod group waits, which placement came nearest, what would make it fit; a
      `PodGroupExplanation`. Of one with a parent, and of `"compositepodgroup/x"`, a `GroupTreeExplanation`.

    All of them have `headline`, `to_dict()`, a text (`str`), and HTML in a notebook.

    `policy` (a Policy of old) or `provider` (an algorithm provider) may stand in the configuration's place. `emulate`
    names the version whose decision about a pod is wanted, with its `feature_gates`; without it, older configurations
    are translated into today's. `plugins` are plugin classes of your own, which run beside the others unless the
    configuration mentions them.
    """
    outside = plugins_from_classes(plugins)
    target = read_target(what, namespace)
    found = read_objects(objects, kinds_for(target))
    target = as_typed(found, target)
    given = GivenConfiguration.read(config, policy, provider, feature_gates, emulate)
    generation = None if emulate is None else generation_of(emulate)
    check_no_emulation(bool(outside.classes), generation)
    if generation is not None:
        check_pod(target, node, is_emulation=True)
        explanation = explain_emulated(found, target.key, given, generation)
        return explanation if node is None else why_not_node(explanation, node)
    assembled = assemble(given.as_of_today().config, given=outside)
    found_answer, notes = answer(found, target, assembled.config, registry=assembled.registry, node=node)
    for note in notes:
        warnings.warn(note, KubeschedWarning, stacklevel=2)
    return found_answer


_OF_SCHEDULING = (AskedKind.POD, AskedKind.NODE, AskedKind.COMPOSITE_POD_GROUP)


def kinds_for(target: AskedAbout) -> Kinds:
    """The kinds of objects that an answer looks at."""
    return KINDS if target.kind in _OF_SCHEDULING else CLUSTER_KINDS


def as_typed(found: Manifests, target: AskedAbout) -> AskedAbout:
    """A pod is meant where there is one whose namespace is called like a kind."""
    if target.kind is AskedKind.POD:
        return target
    if not any(isinstance(item, Pod) and item.key == target.text for item in found.objects):
        return target
    namespace, _, name = target.text.partition("/")
    return AskedAbout(target.text, AskedKind.POD, name, namespace)


def check_pod(target: AskedAbout, node: str | None, *, is_emulation: bool) -> None:
    """Raises NotExplainableError for what can be asked about pods only."""
    if target.kind is AskedKind.POD:
        return
    if node is not None:
        raise NotExplainableError(f"{target.text}: why not a node is a question about a pod")
    if is_emulation:
        raise NotExplainableError(f"{target.text}: an emulation explains pods only")


def answer(
    found: Manifests,
    target: AskedAbout,
    config: KubeSchedulerConfiguration,
    source: str = "",
    registry: Registry | None = None,
    node: str | None = None,
) -> tuple[Answer, list[str]]:
    """The answer, and what is to be said about it. Objects that scheduling does not look at are taken out of `found`.

    Raises NotExplainableError and UnknownNodeError.
    """
    check_pod(target, node, is_emulation=False)
    with_whom = (config, source, registry)
    if target.kind is AskedKind.POD:
        _keep_scheduled_kinds(found)
        explanation = explain_pod(found, target.key, *with_whom)
        if not explanation.placed_on:
            waiting = WaitingGroups(partial(build_cluster, found), *with_whom)
            explanation.waiting_group = waiting.of(explanation.pod.pod)
        return (explanation if node is None else why_not_node(explanation, node)), []
    if target.kind is AskedKind.NODE:
        return explain_node(found, target.name, *with_whom), []
    if target.kind is AskedKind.POD_GROUP:
        unmade = unmade_members(found, target.key)
        _keep_scheduled_kinds(found)
        return explain_group(found, target.key, *with_whom, unmade=unmade), []
    if target.kind is AskedKind.COMPOSITE_POD_GROUP:
        return explain_composite(found, target.key, *with_whom), []
    if target.kind is AskedKind.WORKLOAD:
        return _workload(found, target, *with_whom)
    namespace = target.name if target.kind is AskedKind.NAMESPACE else None
    notes = [unmade.note for unmade in unmade_pods(found, namespace)]
    _keep_scheduled_kinds(found)
    subject = "All namespaces" if namespace is None else f"Namespace {namespace}"
    overview = explain_pods(found, lambda pod: namespace in (None, pod.namespace), subject, *with_whom, notes=notes)
    return overview, []


def _workload(
    found: Manifests, target: AskedAbout, config: KubeSchedulerConfiguration, source: str, registry: Registry | None
) -> tuple[Answer, list[str]]:
    """Its pods that wait, grouped by cause; if none does, one as its controller would create it now."""
    kind, key = target.workload, target.key
    own = OwnedPods(found.objects).keys(kind, key)
    workload = find_workload(found, kind, key)
    missing = daemons_unmade(found, key) if kind == "DaemonSet" and not own else None
    if workload is None and not own and missing is None:
        raise NotExplainableError(f"{kind} {key} does not exist{_meant(found, kind, target)}")
    wanted = None if workload is None else n_wanted(workload)
    if workload is not None and kind != "DaemonSet" and (wanted is None or len(own) < wanted):
        missing = why_unmade(found, kind, key)
        if missing is None and not own:
            made = with_one_pod(found, kind, key)
            assert made is not None
            note = f"{kind} {key}: explained by one of its pods, as it would be created now"
            return explain_pod(made[0], made[1].pod_key, config, source, registry), [note]
    _keep_scheduled_kinds(found)
    subject = f"{kind} {key}"
    overview = explain_pods(
        found, lambda pod: pod.key in own, subject, config, source, registry, n_wanted=wanted, missing=missing
    )
    return overview, []


def _meant(found: Manifests, kind: str, target: AskedAbout) -> str:
    """Workloads of the kind that have that name elsewhere, or a name that is nearly the same."""
    known = sorted(item.key for item in found.objects if type(item).__name__ == kind)
    same = [key for key in known if key.partition("/")[2] == target.name]
    near = same or get_close_matches(target.key, known, 1, 0.8)
    return f"; there is {', '.join(near[:3])}" if near else ""


def _keep_scheduled_kinds(found: Manifests) -> None:
    kept = set(KINDS.values())
    found.objects[:] = [item for item in found.objects if type(item) in kept]
