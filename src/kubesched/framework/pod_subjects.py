"""Subjects of hints that look for pods with certain labels: `Subjects` of `kubesched.framework.events`.

A pod is about its namespace and each of its labels there; and about its labels in any namespace. A selector looks for
one of the labels that it requires, or, if it requires none, for whatever is in its namespaces.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.selectors import Selector

ANY_NAMESPACE = ""


def selected(selector: Selector, namespaces: Iterable[str]) -> Iterator[Hashable]:
    """What pods that a selector matches, in one of these namespaces, are about."""
    if selector.nothing:
        return
    required = next((one for one in selector.requirements if one.operator == "In"), None)
    for namespace in namespaces:
        if required is None:
            yield namespace, ""
        else:
            for value in required.values:
                yield namespace, required.key, value


def of_changed_pod(old: object | None, new: object | None) -> set[Hashable]:
    """What a pod is about, before and after a change."""
    found: set[Hashable] = set()
    for pod in (old, new):
        if isinstance(pod, Pod):
            for namespace in (pod.namespace, ANY_NAMESPACE):
                found.add((namespace, ""))
                found.update((namespace, key, value) for key, value in pod.labels.items())
    return found
