"""Which metrics are shown, and which values of their labels: the flags about metrics, read and applied.

Errors are told in the words, and with the paths, of Kubernetes. None of kube-scheduler's own metrics is hidden in
v1.36, so `--show-hidden-metrics-for-version` adds none.

Next: `settings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import yaml

from kubesched.k8s.model.kubernetes_yaml import load_document
from kubesched.live.options.serving import FlagValue
from kubesched.live.options.settings import MetricsSettings
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily, relabelled

UNEXPECTED = "unexpected"


def shown_families(families: Iterable[MetricFamily], settings: MetricsSettings) -> Iterator[MetricFamily]:
    """The families as they are to be shown; series whose labels become the same are added up."""
    for family in families:
        name = family.definition.full_name
        if name in settings.disabled:
            continue
        allowed = [settings.allowed_label_values.get((name, label)) for label in family.definition.labels]
        yield _constrained(family, allowed) if any(values is not None for values in allowed) else family


def _constrained(family: MetricFamily, allowed: list[frozenset[str] | None]) -> MetricFamily:
    def told(labels: LabelValues) -> LabelValues:
        pairs = zip(labels, allowed, strict=True)
        return tuple(value if values is None or value in values else UNEXPECTED for value, values in pairs)

    return relabelled(family, told)


PREVIOUS_VERSION = "1.35"
_METRIC = "[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = "[a-zA-Z_][a-zA-Z0-9_]*"
_METRIC_NAME = re.compile(_METRIC)
_LABEL_OF_METRIC = re.compile(f"({_METRIC}),({_LABEL})")
_KEY_RULE = (
    "must have keys with format `metricName,labelName` where metricName matches "
    f'"{_METRIC}" and labelName matches "{_LABEL}"'
)


def metrics_settings(value: FlagValue, errors: ErrorList) -> MetricsSettings:
    """The settings; whatever is wrong goes to `errors`."""
    version = value("show-hidden-metrics-for-version")
    if version not in ("", PREVIOUS_VERSION):
        rule = f"must be omitted or have the value '{PREVIOUS_VERSION}'; only the previous minor version is allowed"
        errors.invalid("metrics.showHiddenMetricsForVersion", version, rule)
    _check_names(value("disabled-metrics"), errors)
    return MetricsSettings(
        disabled=frozenset(value("disabled-metrics")),
        allowed_label_values=_allowed_label_values(
            dict(value("allow-metric-labels")), value("allow-metric-labels-manifest"), errors
        ),
    )


def _check_names(names: tuple[str, ...], errors: ErrorList) -> None:
    wrong = next((name for name in names if not _METRIC_NAME.fullmatch(name)), None)
    if wrong is not None:
        rule = f'must be fully qualified metric names matching "^{_METRIC}$", got "{wrong}"'
        errors.invalid("metrics.disabledMetrics", names, rule)


def _allowed_label_values(
    given: dict[str, str], manifest: str, errors: ErrorList
) -> Mapping[tuple[str, str], frozenset[str]]:
    if not all(map(_LABEL_OF_METRIC.fullmatch, given)):
        errors.invalid("metrics.allowListMapping", given, _KEY_RULE)
        return {}
    if manifest:
        from_file = _read_manifest(manifest, errors)
        if given:
            both = "cannot specify both allowListMapping and allowListMappingManifest"
            errors.invalid("metrics", manifest, both)
        given = from_file | given
    return MappingProxyType(
        {tuple(key.split(",", 1)): frozenset(values.split(",")) for key, values in given.items()}  # type: ignore[misc]
    )


def _read_manifest(path: str, errors: ErrorList) -> dict[str, str]:
    field = "metrics.allowListMappingManifest"
    try:
        content = load_document(Path(path).read_bytes())
    except OSError as problem:
        errors.invalid(field, path, f"failed to read allow list manifest: {problem.strerror or problem}")
        return {}
    except yaml.YAMLError as problem:
        errors.invalid(field, path, f"failed to parse allow list manifest: {' '.join(str(problem).split())}")
        return {}
    found = {} if content is None else content
    if not isinstance(found, dict) or not all(isinstance(item, str) for pair in found.items() for item in pair):
        errors.invalid(field, path, "failed to parse allow list manifest: a mapping from text to text is expected")
        return {}
    if not all(map(_LABEL_OF_METRIC.fullmatch, found)):
        errors.invalid(field, path, f"invalid allow list mapping in manifest: {_KEY_RULE}")
        return {}
    return found
