"""Nodes by zone, pool, or any label: what people mean by these words, whoever runs their cluster. And nodes by label
selectors (`--nodes`, `--exclude-nodes`); each command says what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.selectors import Selector, SelectorError, parse_selector
from kubesched.k8s.model.spelling import did_you_mean

NODE = "node"
LABELS_OF = {
    "zone": ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    "region": ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    "pool": (
        "karpenter.sh/nodepool",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name",
        "cloud.google.com/gke-nodepool",
        "kubernetes.azure.com/agentpool",
        "agentpool",
        "pool",
    ),
}
"""The labels that say it, the first that a node has counts."""


class NoSuchGroupError(KubeschedError, LookupError):
    """No node belongs to a group of this kind or name."""


def group_of(node: Node, by: str) -> str | None:
    """The node's zone, pool, or value of a label; for `node`, its name. None if nothing says it."""
    if by == NODE:
        return node.name
    labels = node.metadata.labels or {}
    return next((labels[key] for key in LABELS_OF.get(by, (by,)) if key in labels), None)


def grouped(nodes: Iterable[Node], by: str) -> dict[str, list[Node]]:
    """The nodes of each group, groups and nodes in the order of their names; those without a group are left out."""
    groups: dict[str, list[Node]] = {}
    present = sorted(nodes, key=lambda node: node.name)
    for node in present:
        name = group_of(node, by)
        if name is not None:
            groups.setdefault(name, []).append(node)
    if not groups:
        raise NoSuchGroupError(_nothing_says(present, by))
    return dict(sorted(groups.items()))


def nodes_of(nodes: Iterable[Node], by: str, name: str) -> list[Node]:
    """The nodes of one group."""
    groups = grouped(nodes, by)
    if name not in groups:
        raise NoSuchGroupError(f'there is no {by} "{name}"{did_you_mean(name, groups)}')
    return groups[name]


def _nothing_says(nodes: list[Node], by: str) -> str:
    if not nodes:
        return "there are no nodes"
    if by in LABELS_OF:
        return f"no node has a label for its {by}: {' or '.join(LABELS_OF[by])} is expected"
    labels = {key for node in nodes for key in node.metadata.labels or {}}
    return f'no node has the label "{by}"{did_you_mean(by, [*LABELS_OF, NODE, *sorted(labels)])}'


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """By two label selectors, as `kubectl -l` takes them; empty ones select all nodes."""

    nodes: str = ""
    exclude_nodes: str = ""

    @property
    def is_everything(self) -> bool:
        return not (self.nodes or self.exclude_nodes)

    def of(self, nodes: Iterable[Node]) -> list[Node]:
        """Raises NoSuchGroupError if there is none, or a selector is none."""
        found = [node for node in nodes if self.has(node)]
        if not found and not self.is_everything:
            raise NoSuchGroupError(f"no node is left that the selectors allow ({self})")
        return found

    def has(self, node: Node) -> bool:
        if self.nodes and not _selector("nodes", self.nodes).matches(node.labels):
            return False
        return not self.exclude_nodes or not _selector("exclude_nodes", self.exclude_nodes).matches(node.labels)

    def told(self, what: str) -> Iterator[str]:
        """What a report says of it: `Only nodes with pool=a fail.`"""
        if not self.is_everything:
            yield what.format(f"nodes {self}")

    def __str__(self) -> str:
        wanted = f"with {self.nodes}" if self.nodes else ""
        unwanted = f"without {self.exclude_nodes}" if self.exclude_nodes else ""
        return " and ".join(filter(None, (wanted, unwanted)))


ALL_NODES = NodeSelection()


@lru_cache(8)
def _selector(option: str, text: str) -> Selector:
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise NoSuchGroupError(f'{option} "{text}": {error}') from None
