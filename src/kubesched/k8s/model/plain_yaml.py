"""Values as YAML that people read: everything written out, keys in the order given."""

from __future__ import annotations

from typing import Any

import yaml


class _Plain(yaml.CSafeDumper):
    """No anchors for what occurs twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def plain_yaml(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000))
