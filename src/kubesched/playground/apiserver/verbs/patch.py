"""Patch: an object changed by a JSON patch, a merge patch, a strategic merge patch or a server-side apply.

Ends in the same checks as an update. An apply on a name that does not exist creates. The patches themselves are in
``patching/``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from kubesched.k8s.model.merge_patch import merged
from kubesched.playground.apiserver.body_text import YamlTextError, load_yaml, unknown_field
from kubesched.playground.apiserver.errors import StatusError, bad_request, conflict, not_found, unclassified
from kubesched.playground.apiserver.go_text import json_kind, printed
from kubesched.playground.apiserver.kinds.registry import EVERY_KIND
from kubesched.playground.apiserver.openapi.go_json import needs_no_restoring, restore_error, restore_whole_numbers
from kubesched.playground.apiserver.openapi.schemas import ValueType
from kubesched.playground.apiserver.patching import json_patch, strategic
from kubesched.playground.apiserver.patching.apply import apply as server_side_apply
from kubesched.playground.apiserver.patching.apply import mark_reset, type_for
from kubesched.playground.apiserver.patching.json_patch import as_written, in_go_order, plain_copy
from kubesched.playground.apiserver.served_resource import DecodeError, Object, ServedResource
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.create import create
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions, options_error
from kubesched.playground.apiserver.verbs.update import apply_update

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_STRING = ValueType("string")
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


@dataclass(frozen=True, slots=True)
class PatchBody:
    """A patch as it was sent; ``findings`` tell of fields that are given twice in it, or that no operation has."""

    media_type: str
    content: Any
    findings: list[str] = field(default_factory=list)


def patch(api: Api, target: Target, body: PatchBody, options: WriteOptions) -> tuple[Stored, bool]:
    """Changes the object; True says that an apply created it. A strategic patch is used up."""
    check_patch_options(body.media_type, options)
    before = api.store.get(target.resource.storage_key, writing.key_of(target))
    if body.media_type == APPLY_PATCH:
        return _apply(api, target, body, before, options)
    if before is None:
        raise not_found(target.resource, target.name)
    old = _with_kind(target.resource, writing.load(target.resource, before))
    new = patched(old, body.media_type, body.content, target.resource)
    read_patched(target.resource, new, body, options, old)
    _check_patched_identity(target, new)
    return apply_update(api, target, new, before, options), False


def check_patch_options(media_type: str, options: WriteOptions) -> None:
    """An apply names its manager; only an apply can be forced."""
    if media_type == APPLY_PATCH:
        if not options.has_manager:
            cause = ("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
            raise options_error("PatchOptions", [cause])
    elif options.force:
        raise options_error(
            "PatchOptions", [("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch")]
        )


def patched(old: Object, media_type: str, content: Any, resource: ServedResource) -> Object:
    """The object after a patch that is not an apply."""
    if media_type == JSON_PATCH:
        new = json_patch.apply(old, content)
    elif media_type == MERGE_PATCH:
        if content is None:
            raise bad_request("Invalid JSON Patch")
        if not isinstance(content, dict):
            into = "Go value of type map[string]interface {}"
            raise bad_request(f"error decoding patch: json: cannot unmarshal {json_kind(content)} into {into}")
        new = merged(old, content)
    else:
        if not isinstance(content, dict | None):
            raise bad_request(
                f"json: cannot unmarshal {json_kind(content)} into Go value of type map[string]interface {{}}"
            )
        new = strategic.apply(old, content if content is not None else {}, resource)
    if new is None:
        raise json_patch.rejected()
    if not isinstance(new, dict):
        raise _wrong_patch(json.dumps(new, separators=(",", ":")), _no_kind(new))
    return new


def _with_kind(resource: ServedResource, obj: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _check_patched_identity(target: Target, new: Object) -> None:
    """A patch cannot make it another object."""
    metadata = new.setdefault("metadata", {})
    name = metadata.get("name")
    if not name:
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    if target.resource.namespaced and metadata.get("namespace", target.namespace) != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if target.resource.namespaced:
        metadata["namespace"] = target.namespace


def _no_kind(value: object) -> str:
    """What Go says where it looks for a kind and finds no object."""
    target = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    why = f"json: cannot unmarshal {json_kind(value)} into Go value of type {target}"
    return f"couldn't get version/kind; json parse error: {why}"


def _has_no_version(new: Object, media_type: str) -> bool:
    return media_type != STRATEGIC_PATCH and not new.get("apiVersion")


def _kind_error(resource: ServedResource, new: Object, media_type: str) -> str:
    """What is wrong with kind and apiVersion after the patch; a strategic patch cannot change them."""
    kind, version = new.pop("kind", None) or resource.kind, new.pop("apiVersion", None)
    if not version and media_type != STRATEGIC_PATCH:
        new.clear()
    version = version or resource.api_version
    for name, value in (("kind", kind), ("apiVersion", version)):
        if isinstance(value, str):
            continue
        if media_type == STRATEGIC_PATCH:
            return restore_error(value, _STRING)
        why = f"json: cannot unmarshal {json_kind(value)} into Go struct field .{name} of type string"
        return f"couldn't get version/kind; json parse error: {why}"
    if media_type == STRATEGIC_PATCH or (kind, version) == (resource.kind, resource.api_version):
        return ""
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    other = next((one for one in EVERY_KIND if (one.kind, one.api_version) == (kind, version)), None)
    if other is not None and (other.group_resource, other.kind) == (resource.group_resource, resource.kind):
        stored = other.to_stored(new) if other.to_stored else new
        shown = dict(resource.from_stored(stored) if resource.from_stored else stored)
        new.clear()
        new.update(shown)
        return ""
    if other is not None:
        try:
            other.decode(plain_copy(new))
        except DecodeError as error:
            return str(error)
        own = resource.group.partition(".")[0] or "core"
        return f"converting ({version.rpartition('/')[2]}.{kind}) to ({own}.{resource.kind}): unknown conversion"
    return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'


def read_patched(
    resource: ServedResource, new: Object, body: PatchBody, options: WriteOptions, old: Object | None = None
) -> None:
    """The schema's word on the patched object; told in the words of a patch. What the patch left of the `old` one, as
    it is stored, is right."""
    media_type = body.media_type
    is_strict = options.field_validation == "Strict"
    # decoding drops what it does not know, and only the strict tell about it with the object as it was
    head: Object = {name: new[name] for name in ("apiVersion", "kind") if name in new}
    # without a version nothing of it is understood
    lost = sorted(new.keys() - {"apiVersion", "kind"}) if _has_no_version(new, media_type) else []
    problem = _kind_error(resource, new, media_type)
    if problem and resource.is_custom:
        raise bad_request(problem)
    if problem:
        raise _wrong_patch(_shown_patch({**head, **new}, body, resource), problem)
    shown = _shown_patch({**head, **new}, body, resource) if is_strict else ""
    known = old or {}
    touched = {name: item for name, item in new.items() if item is not known.get(name)}
    mark_reset(new)
    restores = media_type == STRATEGIC_PATCH and not resource.is_custom
    restores = restores and not needs_no_restoring(touched, type_for(resource))
    problem = restore_error(new, type_for(resource)) if restores else ""
    try:
        if problem:
            raise DecodeError(problem)
        if restores:
            restore_whole_numbers(new, type_for(resource))
        unknown = resource.decode(new)
    except DecodeError as error:
        raise _wrong_patch(shown or _shown_patch({**head, **new}, body, resource), str(error)) from None
    unknown.sort(key=_place_when_written)
    unknown = lost or unknown
    findings = [*body.findings, *(unknown_field(path) for path in unknown)]
    if findings and is_strict:
        raise _wrong_patch(shown, f"strict decoding error: {', '.join(findings)}")
    if options.field_validation == "Warn":
        writing.warn_of_fields(findings, options)


def _place_when_written(path: str) -> list[tuple[str, int]]:
    """Where a patch put something, the real server writes the names in order before it reads the object again."""
    steps = re.findall(r"([^.\[]*)(?:\[(\d+)\])?", path)
    return [(name, int(index or "0")) for name, index in steps]


def _shown_patch(new: Object, body: PatchBody, resource: ServedResource) -> str:
    """What a message shows: a strategic patch itself, else the patched object."""
    if body.media_type == STRATEGIC_PATCH:
        return printed(body.content)
    if not resource.is_custom:
        head: Object = {name: new[name] for name in ("apiVersion", "kind") if name in new}
        new = {**head, **in_go_order(new, type_for(resource))}
    ordered = as_written(new, body.content)
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False)


def _wrong_patch(shown: str, why: str) -> StatusError:
    message = f"Invalid value: {json.dumps(shown, ensure_ascii=False)}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": [cause]})


def read_apply_body(data: bytes) -> Object:
    """The YAML (or JSON) of an apply."""
    try:
        content = load_yaml(data)
    except YamlTextError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(content, dict | None):
        why = f"json: cannot unmarshal {json_kind(content)} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    return content or {}


def _apply(
    api: Api, target: Target, body: PatchBody, before: Stored | None, options: WriteOptions
) -> tuple[Stored, bool]:
    resource, content = target.resource, body.content
    _check_applied_identity(target, content)
    live = writing.load(resource, before) if before else None
    version = _applied_version(content)
    if before is None and target.subresource:
        raise not_found(resource, target.name)
    new = server_side_apply(live, content, resource, options.manager, options.force, api.now(), target.subresource)
    given = content["metadata"].get("name", "")
    if not given and before is None:
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if given and given != target.name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({target.name})")
    new.pop("kind", None)
    new.pop("apiVersion", None)
    _read_applied(target, new, options)
    if body.findings and options.field_validation == "Strict":
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {body.findings[0]}")
    if options.field_validation == "Warn":
        writing.warn_of_fields(body.findings, options)
    options.is_apply = True
    if before is None:
        new["metadata"].setdefault("name", target.name)
        return create(api, target, new, options), True
    if version and version != str(before.revision):
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(resource, target.name, why)
    new["metadata"]["resourceVersion"] = str(before.revision)
    return apply_update(api, target, new, before, options), False


def _applied_version(content: Object) -> str:
    """The version that the applied configuration insists on, taken out of it: nobody owns it."""
    metadata = content.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("resourceVersion", ""), str | None):
        return ""
    return metadata.pop("resourceVersion", "") or ""


def _read_applied(target: Target, new: Object, options: WriteOptions) -> None:
    """The schema's word on the merged object."""
    resource = target.resource
    restores = not resource.is_custom and not needs_no_restoring(new, type_for(resource))
    problem = restore_error(new, type_for(resource)) if restores else ""
    try:
        if problem:
            raise DecodeError(problem)
        if restores:
            restore_whole_numbers(new, type_for(resource))
        unknown = resource.decode(new)
    except DecodeError as error:
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        why = f"unable to convert unstructured object to {kind}: {error}"
        raise unclassified(f"failed to convert new object (/{target.name}; {kind}) to proper version: {why}") from None
    new["metadata"] = new.get("metadata") or {}
    writing.report_fields([unknown_field(path) for path in unknown], options, "")


def _group_version_kind(content: Object) -> str:
    group, _, version = str(content.get("apiVersion") or "").rpartition("/")
    return f"{group}/{version}, Kind={content.get('kind') or ''}"


def _check_applied_identity(target: Target, content: Object) -> None:
    resource = target.resource
    if content.get("apiVersion") != resource.api_version or content.get("kind") != resource.kind:
        if content.get("kind") != resource.kind:
            raise bad_request(f"invalid object type: {_group_version_kind(content)}")
        versions = f"Specified patch version: {content.get('apiVersion')}, expected: {resource.api_version}"
        raise bad_request(f"Incorrect version specified in apply patch. {versions}")
    if content.get("metadata") is None:
        content["metadata"] = {}
