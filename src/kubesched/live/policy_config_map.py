"""Reads a Policy from a ConfigMap of the cluster, as `--policy-configmap` asks."""

from __future__ import annotations

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.older.config import PolicyConfigMap
from kubesched.scheduler.config import ConfigError
from kubesched.scheduler.config.errors import FieldError


class ConfigMapData(msgspec.Struct, frozen=True):
    """What is looked at of a ConfigMap."""

    data: dict[str, str] | None = None


async def read_policy(target: ServerTarget, where: PolicyConfigMap) -> bytes:
    """Asks the server of the target, once."""
    client = RestClient(target)
    try:
        return await policy_in(client, where)
    finally:
        await client.close()


async def policy_in(client: Requester, where: PolicyConfigMap) -> bytes:
    """The text under the key `policy.cfg`. Raises `ConfigError` if it is not there, `ClientConfigError` if the server
    cannot be asked."""
    source = str(where)
    try:
        answer = await client.request("GET", f"/api/v1/namespaces/{where.namespace}/configmaps/{where.name}")
    except ApiError as refused:
        text = f"couldn't get policy config map {where.namespace}/{where.name}: {refused}"
        raise ConfigError([FieldError("", text)]) from None
    except (Unreachable, AnswerLost) as lost:
        raise ClientConfigError(f"{source}: {lost}") from None
    found = msgspec.json.decode(answer, type=ConfigMapData).data or {}
    if where.KEY not in found:
        raise ConfigError([FieldError("", f'missing policy config map value at key "{where.KEY}"')], source)
    return found[where.KEY].encode()
