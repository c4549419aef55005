"""What a word without quotes means in Kubernetes' YAML: no dates, no base-60 numbers; `1e3` is a number, `y` is true.

`ManifestLoader` reads by these rules. `ManifestDumper` quotes every text that these rules, or plain YAML 1.1, would
take for something else.

Next: `source` for reading, `manifest` for writing.
"""

from __future__ import annotations

import re
from typing import ClassVar

import yaml

_PLAIN_SCALARS = (
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    (
        "bool",
        r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        tuple("yYnNtTfFoO"),
    ),
    ("int", r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)", tuple("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        tuple("-+.0123456789"),
    ),
    ("merge", "<<", ("<",)),
)
"""Tag, pattern, and the characters with which a word of the pattern can begin."""


class ManifestLoader(yaml.CSafeLoader):
    """Reads plain scalars as Kubernetes does."""

    bool_values: ClassVar[dict[str, bool]] = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}


class ManifestDumper(yaml.CSafeDumper):
    """Writes what any reader of YAML takes for what it is."""


ManifestLoader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _PLAIN_SCALARS:
    for _kind in (ManifestLoader, ManifestDumper):
        _kind.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
