"""The templates that a stateful set or daemon set has had, kept as ControllerRevisions, numbered in the order of use.

`kubectl rollout history` and `undo` go by them. A template that comes back gets the highest number again. Old ones go
when there are more than `revisionHistoryLimit`; those that pods were made from stay.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.model.apps import StatefulSet
from kubesched.k8s.model.core import Pod, PodTemplateSpec
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.templates import REVISION_HASH_LABEL, owner_reference
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.kinds import ControllerRevision, home_of, kind_name
from kubesched.playground.controllers.whole_bodies import plain

DEFAULT_HISTORY = 10
_encode_in_order = msgspec.json.Encoder(order="sorted").encode
_HASH_LABEL = "controller.kubernetes.io/hash"


async def keep_revision(context: ControllerContext, owner: KubeObject, hash_: str) -> None:
    """The template that it has now, as the newest."""
    known = sorted(context.view.owned(owner.metadata.uid, ControllerRevision), key=lambda one: one.revision)
    name = f"{owner.name}-{hash_}"
    current = next((one for one in known if one.name == name), None)
    highest = known[-1].revision if known else 0
    if current is None:
        await _create(context, owner, name, hash_, highest + 1)
    elif current is not known[-1]:
        await context.writer.patch(current, {"revision": highest + 1})
    await _tidy_up(context, owner, [one for one in known if one.name != name])


@dataclass(frozen=True, slots=True)
class KeptTemplate:
    """A template that a set had before: whole and as the model has it, and its hash."""

    whole: Body
    typed: PodTemplateSpec
    revision: str


def older_template(context: ControllerContext, owner: StatefulSet) -> KeptTemplate | None:
    """What the set's `currentRevision` names; None if that is not kept."""
    known = context.view.find(ControllerRevision, f"{owner.namespace}/{owner.status.current_revision}")
    if known is None:
        return None
    spec = msgspec.json.decode(known.data).get("spec") or {}
    whole = {key: value for key, value in (spec.get("template") or {}).items() if key != "$patch"}
    return KeptTemplate(whole, msgspec.convert(whole, PodTemplateSpec), known.name.rpartition("-")[2])


async def _create(context: ControllerContext, owner: KubeObject, name: str, hash_: str, revision: int) -> None:
    template = deepcopy(context.view.whole(owner).spec.get("template") or {})
    labels = (template.get("metadata") or {}).get("labels") or {}
    reference = {**plain(owner_reference(owner)), "blockOwnerDeletion": True}
    metadata = {
        "name": name,
        "namespace": owner.namespace,
        "labels": {**labels, _HASH_LABEL: hash_, REVISION_HASH_LABEL: hash_},
        "ownerReferences": [reference],
    }
    body: Body = {
        "apiVersion": home_of(ControllerRevision).api_version,
        "kind": kind_name(ControllerRevision),
        "metadata": metadata,
        "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        "revision": revision,
    }
    body["data"] = msgspec.json.decode(_encode_in_order(body["data"]))  # clients compare it letter by letter
    made = ControllerRevision(metadata=owner.metadata, revision=revision)
    try:
        await context.writer.create(made, body)
    except ApiError as error:
        if not error.is_already_exists:  # of ours, and not seen yet: the next look finds it
            raise


async def _tidy_up(context: ControllerContext, owner: KubeObject, old: list[ControllerRevision]) -> None:
    limit = context.view.whole(owner).spec.get("revisionHistoryLimit", DEFAULT_HISTORY)
    hashes = {
        pod.labels.get(REVISION_HASH_LABEL, "").rpartition("-")[2]
        for pod in context.view.owned(owner.metadata.uid, Pod)
    }
    unused = [one for one in old if one.name.rpartition("-")[2] not in hashes]
    for one in unused[: max(0, len(unused) - limit)]:
        await context.writer.delete(one)
