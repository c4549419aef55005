"""What a kubelet keeps right in the status of its node, beside conditions: extended resources, and images.

Capacity of an extended resource that somebody patches into the status becomes allocatable, and what is taken out of the
capacity is taken out of the allocatable resources. The images of pods that ran here are listed.
"""

from __future__ import annotations

from kubesched.k8s.model.core import Node
from kubesched.playground.hollow_nodes.pod_statuses import Body

MOST_IMAGES = 50
IMAGE_BYTES = 100_000_000
"""Nobody knows how large they are; a round number for all."""


def allocatable_patch(node: Node) -> Body:
    """What to change in `status.allocatable`; None takes a resource away."""
    capacity, allocatable = node.status.capacity or {}, node.status.allocatable or {}
    patch: Body = {
        name: str(amount) for name, amount in capacity.items() if _is_extended(name) and allocatable.get(name) != amount
    }
    return patch | {name: None for name in allocatable if _is_extended(name) and name not in capacity}


def images_body(images: list[str]) -> list[Body]:
    """The newest that fit, as a kubelet reports them."""
    return [{"names": [image], "sizeBytes": IMAGE_BYTES} for image in images[-MOST_IMAGES:]]


def full_name(image: str) -> str:
    """As a node lists it: with its tag."""
    return image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"


def _is_extended(name: str) -> bool:
    domain, _, rest = name.partition("/")
    return bool(rest) and not (domain == "kubernetes.io" or domain.endswith(".kubernetes.io"))
