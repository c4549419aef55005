"""The reference page of the configuration, made from the structs: fields, types, defaults, descriptions.

A field's description is the text under it in the struct. To regenerate the page:

    python -m kubesched.scheduler.config.reference_page > docs/reference/configuration.md

Next: `configuration` and `plugin_args`, which hold the facts.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from typing import Any, Final

import msgspec

from kubesched.k8s.model.meta import KubeStruct
from kubesched.scheduler.config.configuration import (
    ClientConnectionConfiguration,
    ExtenderConfiguration,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    plain,
)
from kubesched.scheduler.config.defaults import DEFAULT_PLUGINS
from kubesched.scheduler.config.load import type_name
from kubesched.scheduler.config.plugin_args import (
    API_VERSION,
    ARGS_BY_PLUGIN,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.scheduler.config.validation import REMOVED_PLUGINS

_KUBERNETES_NAMES: Final[dict[type[Any], str]] = {PluginRef: "Plugin", ExtenderConfiguration: "Extender"}
"""Where a struct had to be called differently from its kind, because the name is taken in the package."""

_SECTIONS: Final[tuple[tuple[str, tuple[type[msgspec.Struct], ...]], ...]] = (
    ("The whole", (KubeSchedulerConfiguration, LeaderElectionConfiguration, ClientConnectionConfiguration)),
    ("Profiles", (KubeSchedulerProfile, Plugins, PluginSet, PluginRef, PluginConfig)),
    (
        "Arguments of plugins",
        (
            *ARGS_BY_PLUGIN.values(),
            ScoringStrategy,
            RequestedToCapacityRatioParam,
            UtilizationShapePoint,
            ResourceSpec,
        ),
    ),
    ("Extenders", (ExtenderConfiguration, ExtenderTLSConfig, ExtenderManagedResource)),
)

_INTRODUCTION: Final = f"""\
# Configuration

kubesched reads the configuration of kube-scheduler v1.36, as YAML or JSON:

    apiVersion: {API_VERSION}
    kind: KubeSchedulerConfiguration

A field that is absent or null takes its default. Unknown fields, keys given twice and values of the wrong type are
errors. All errors are reported at once, each with the path of its field.

    kubesched config default              print the configuration with all defaults
    kubesched config view -f FILE         print a file with all defaults filled in
    kubesched config validate FILE...     check files; --resolved shows the plugins of each extension point in order

This page is generated from the code (`kubesched.scheduler.config.reference_page`).
"""

_PLUGINS_TEXT: Final = f"""\
## Default plugins

Every profile begins with these plugins at `multiPoint`, in this order. A plugin runs at every extension point that it
implements. The feature gates have their values of Kubernetes 1.36.

{{plugins}}

How a profile changes them:

- A plugin enabled at an extension point goes before the same plugin at `multiPoint`: it takes that place's weight, and
  runs before the other plugins of `multiPoint`.
- A default plugin enabled again at `multiPoint` keeps its place and takes the new weight.
- Any other plugin enabled at `multiPoint` runs after the default ones.
- A plugin disabled at an extension point does not run there. One disabled at `multiPoint` is not enabled by default.
- `*` among the disabled plugins stands for all of them.
- Enabled beats disabled: to reorder, disable `*` and enable the plugins in the order that you want.

Names of plugins that are gone and are refused: {", ".join(f"`{name}`" for name in REMOVED_PLUGINS)}.
"""


def reference_page() -> str:
    """The page in Markdown."""
    parts = [_INTRODUCTION]
    for title, structs in _SECTIONS:
        parts.append(f"## {title}\n")
        parts.extend(_struct_section(struct) for struct in structs)
        if title == "Profiles":
            parts.append(_PLUGINS_TEXT.format(plugins=_default_plugins()))
    return "\n".join(parts)


def _struct_section(struct: type[msgspec.Struct]) -> str:
    descriptions = _field_descriptions(struct)
    lines = [f"### {_name(struct)}", "", inspect.cleandoc(struct.__doc__ or ""), ""]
    lines += ["| Field | Type | Default | Meaning |", "| --- | --- | --- | --- |"]
    for field in msgspec.structs.fields(struct):
        meaning = descriptions[field.name]
        lines.append(f"| `{field.encode_name}` | {_type(struct, field)} | {_default(field.default)} | {meaning} |")
    return "\n".join([*lines, ""])


def _field_descriptions(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The string under each field. A field without one is an error: the reference must be complete."""
    body = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            if not (isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)):
                raise LookupError(f"{struct.__name__}.{field.target.id} has no description")
            found[field.target.id] = inspect.cleandoc(str(text.value.value)).replace("\n", " ")
    return found


def _name(struct: type[Any]) -> str:
    return _KUBERNETES_NAMES.get(struct, struct.__name__)


def _type(struct: type[msgspec.Struct], field: msgspec.structs.FieldInfo) -> str:
    if struct is PluginConfig and field.name == "args":
        return "object"
    name = type_name(field.type)
    plain_name = name.removeprefix("array of ")
    for owner, kubernetes_name in _KUBERNETES_NAMES.items():
        if plain_name == owner.__name__:
            return name.replace(plain_name, kubernetes_name)
    is_of_the_core_group = any(kind.__name__ == plain_name for kind in KubeStruct.__subclasses__())
    return f"{name} of `v1`" if is_of_the_core_group else name


def _default(value: Any) -> str:
    shown = plain(value)
    if value is None or shown in ("", [], {}):
        return ""
    if isinstance(value, msgspec.Struct) and value == type(value)():
        return "its defaults"
    return f"`{json.dumps(shown).strip(chr(34))}`"


def _default_plugins() -> str:
    return "\n".join(
        f"{number}. {plugin.name}" + (f", weight {plugin.weight}" if plugin.weight else "")
        for number, plugin in enumerate(DEFAULT_PLUGINS.multi_point.enabled, start=1)
    )


if __name__ == "__main__":
    sys.stdout.write(reference_page())
