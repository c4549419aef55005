"""What a controller wants done: objects to create, to replace, to delete. Nothing here does anything."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubesched.k8s.model.meta import KubeObject


@dataclass(frozen=True, slots=True)
class CreateObject:
    item: KubeObject


@dataclass(frozen=True, slots=True)
class UpdateObject:
    """The object is to be as it is here."""

    item: KubeObject


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Gracefully, if it is a pod that runs."""

    item: KubeObject


Action = CreateObject | UpdateObject | DeleteObject


@dataclass(slots=True)
class Plan:
    """What a controller wants now, in this order, and when it wants to look again although nothing changed."""

    actions: list[Action] = field(default_factory=list)
    again_at_s: float | None = None
    is_cut: bool = False
    """There is more to do than one look may: look again when others had their turn."""
    held_back: str = ""
    """Why pods that are missing are not made now."""
    n_held_back: int = 0
    """How many they are."""

    def create(self, item: KubeObject) -> None:
        self.actions.append(CreateObject(item))

    def update(self, item: KubeObject) -> None:
        self.actions.append(UpdateObject(item))

    def delete(self, item: KubeObject) -> None:
        self.actions.append(DeleteObject(item))

    def look_again(self, at_s: float) -> None:
        self.again_at_s = at_s if self.again_at_s is None else min(self.again_at_s, at_s)
