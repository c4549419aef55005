"""What is wrong with a projected volume: several sources of files in one place."""

from __future__ import annotations

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.pods import files
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32
_SORTS = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
_SWITCHED_OFF = ("clusterTrustBundle", "podCertificate")


def drop_disabled_sources(projection: Object) -> None:
    """Trust bundles and certificates are features that are off: the server forgets them, their place stays."""
    for source in projection.get("sources") or []:
        for name in _SWITCHED_OFF:
            source.pop(name, None)


def projected_errors(projection: Object, path: str) -> list[InvalidField]:
    found = files.mode_errors(projection.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for position, source in enumerate(projection.get("sources") or []):
        at = errors.index(f"{path}.sources", position)
        for sort in ("secret", "configMap"):
            if sort in source:
                found += _named_source_errors(source[sort], f"{at}.{sort}", taken, path)
        for file in source.get("downwardAPI", {}).get("items") or []:
            found += files.downward_errors([file], f"{at}.downwardAPI")
            found += _place_errors(file.get("path", ""), file.get("path", ""), taken, path)
        if "serviceAccountToken" in source:
            found += _token_errors(source["serviceAccountToken"], f"{at}.serviceAccountToken", path)
        if sum(sort in source for sort in _SORTS) > 1:
            found.append(errors.forbidden(at, "may not specify more than 1 volume type per source"))
    return found


def _named_source_errors(source: Object, path: str, taken: set[str], volume_path: str) -> list[InvalidField]:
    name = source.get("name", "")
    found = [] if name else [errors.required(f"{path}.name")]
    for position, item in enumerate(source.get("items") or []):
        found += files.one_item_errors(item, errors.index(f"{path}.items", position))
        found += _place_errors(item.get("path", ""), name, taken, volume_path)
    return found


def _place_errors(where: str, shown: str, taken: set[str], volume_path: str) -> list[InvalidField]:
    if where and where in taken:
        return [errors.invalid(volume_path, shown, "conflicting duplicate paths")]
    taken.add(where)
    return []


def _token_errors(token: Object, path: str, volume_path: str) -> list[InvalidField]:
    seconds, where = token.get("expirationSeconds", 0), token.get("path", "")
    found: list[InvalidField] = []
    if seconds < _SHORTEST_TOKEN_S:
        why = "may not specify a duration less than 10 minutes"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, why))
    if seconds > _LONGEST_TOKEN_S:
        why = "may not specify a duration larger than 2^32 seconds"
        found.append(errors.invalid(f"{path}.expirationSeconds", seconds, why))
    # the path is told as one of the volume, not of the token
    at = f"{volume_path}.path"
    return found + (files.local_path_errors(where, at) if where else [errors.required(at)])
