"""From the flags that were given to everything that `kubesched run` needs to know.

The order is kube-scheduler's: versions and feature gates, logs, all other flags at once, then the configuration.
Whatever a user can get wrong is a `FlagError` or a `ConfigError`; what is merely without effect is a warning in the
outcome. kubesched is v1.36, and says so when `--emulated-version` asks it to be another. A gate that concerns other
components is taken and does nothing, as in kube-scheduler: clusters hand the same flag to all of them.

Next: `effective` for the configuration, `settings` for the outcome; `kubesched.scheduler.config.feature_gates` for what
gates mean.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace as with_fields

from kubesched.live.options import settings
from kubesched.live.options.command import GivenFlags
from kubesched.live.options.effective import (
    BaseScheduler,
    check_written,
    effective_scheduler,
    emulated_generation,
    ignored_flags,
    split_gates,
)
from kubesched.live.options.flag import BOOL, FlagError, FlagUse
from kubesched.live.options.flag_table import FLAGS, FLAGS_BY_NAME
from kubesched.live.options.settings import FlagValue, LogSettings, MetricsSettings, RunOptions, metrics_settings
from kubesched.live.serving.settings import ServingError, ServingSettings
from kubesched.scheduler.config.configuration import extender_warnings
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.feature_gates import (
    NEXT_VERSION,
    SWITCHES,
    FeatureGates,
    GateError,
    check_gates,
    is_known_gate,
)
from kubesched.scheduler.plugin_loading import Assembly, PluginSource, check_no_emulation

_VERSION = re.compile(r"v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")
_OURS = (1, 36)
_OLDEST = (1, 33)
"""kube-scheduler goes back by three versions."""

Version = tuple[int, int]


def check_versions(emulated: tuple[str, ...], min_compatibility: tuple[str, ...]) -> list[str]:
    """All that is wrong with what these flags say."""
    try:
        wanted = _of_kube(emulated).get("kube", _OURS)
        compatible = _of_kube(min_compatibility).get("kube", _OLDEST)
    except ValueError as problem:
        return [str(problem)]
    errors = []
    if not _OLDEST <= wanted <= _OURS:
        errors.append(f"emulation version {_shown(wanted)} is not between [{_shown(_OLDEST)}, {_shown(_OURS)}]")
    elif wanted != _OURS:
        errors.append(f"--emulated-version: kubesched decides as Kubernetes {_shown(_OURS)} only")
    if not _OLDEST <= compatible <= _OURS:
        allowed = f"[{_shown(_OLDEST)}, {_shown(_OURS)}]"
        errors.append(f"minCompatibilityVersion version {_shown(compatible)} is not between {allowed}")
    return errors


def _of_kube(given: tuple[str, ...]) -> dict[str, Version]:
    """Versions by component: `kube=1.36`, or `1.36` alone."""
    found: dict[str, Version] = {}
    for text in given:
        component, equals, version = (part.strip() for part in text.partition("="))
        component, version = (component, version) if equals else ("kube", component)
        parts = _VERSION.fullmatch(version)
        if parts is None:
            raise ValueError(f'could not parse "{version}" as version')
        if int(parts[3] or 0):
            raise ValueError(f"patch version not allowed, got: {component}={version.removeprefix('v')}")
        number = (int(parts[1]), int(parts[2]))
        if component in found:
            both = f"{component}={_shown(found[component])} and {component}={_shown(number)}"
            raise ValueError(f"duplicate version flag, {both}")
        if component != "kube":
            raise ValueError(f"component not registered: {component}")
        found[component] = number
    return found


def _shown(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


_LOG_FORMATS = ("text", "json")


def read_options(given: GivenFlags, policy: bytes | None = None) -> RunOptions:
    """The settings that these flags stand for. Reads the files that they name, other than keys and kubeconfigs.
    `policy` is the Policy that was found in the ConfigMap which they name."""

    def value(name: str) -> Any:
        return given[name] if name in given else FLAGS_BY_NAME[name].default

    _check_refused(given)
    older_gates, gates_of_today = split_gates(value("feature-gates"), emulated_generation(given))
    flagged, gate_warnings = read_gates(gates_of_today)
    named = {*flagged.changed, *asked_gates(gates_of_today)}
    switches = {name: flagged[name] for name in SWITCHES if name in named}
    scheduler = effective_scheduler(given, policy, older_gates, switches)
    gates = flagged.beside(scheduler.configuration.gates)
    plugins, assembled = _assembled(scheduler, given)
    if value("record") and scheduler.emulation is not None:
        check_written(scheduler.emulation, "--record")
    logs = _log_settings(value)
    served, metrics = _checked(value)
    return RunOptions(
        configuration=assembled.config,
        plugins=plugins,
        registry=assembled.registry,
        emulation=scheduler.emulation,
        policy_config_map=scheduler.awaited_policy,
        master=value("master"),
        context=value("context"),
        keeps_classes=not value("no-class-cache"),
        serves_web_page=value("web"),
        record_to=_path(value("record")),
        write_config_to=_path(value("write-config-to")),
        pod_max_in_unschedulable_pods_for_s=value("pod-max-in-unschedulable-pods-duration").seconds,
        serving=served,
        permit_port_sharing=value("permit-port-sharing"),
        permit_address_sharing=value("permit-address-sharing"),
        authentication_kubeconfig=_path(value("authentication-kubeconfig")),
        authorization_kubeconfig=_path(value("authorization-kubeconfig")),
        logs=logs,
        metrics=metrics,
        gates=gates,
        flags=MappingProxyType({flag.name: flag.kind.show(value(flag.name)) for flag in FLAGS}),
        warnings=(
            *gate_warnings,
            *_warnings_without_effect(given),
            *settings.serving_warnings(value),
            *ignored_flags(given),
            *scheduler.notes,
            *extender_warnings(assembled.config.extenders),
        ),
    )


def _assembled(scheduler: BaseScheduler, given: GivenFlags) -> tuple[PluginSource, Assembly]:
    """The configuration in which plugins from outside have their place; it names their files by absolute paths, such
    that it can be written to another file."""
    config, files = scheduler.configuration, given.get("plugin", ())
    check_no_emulation(bool(files or config.plugin_paths), scheduler.emulation)
    plugins = PluginSource(config, given.get("config", ""), files)
    assembled = plugins.read()
    if assembled.outside.classes:
        paths = dict.fromkeys(str(path.absolute()) for path in plugins.paths())
        assembled = dataclasses.replace(assembled, config=with_fields(assembled.config, plugin_paths=tuple(paths)))
    return plugins, assembled


def _check_refused(given: GivenFlags) -> None:
    errors = [
        f"--{flag.name}: {flag.why}"
        for flag in FLAGS
        if flag.use is FlagUse.REFUSED and flag.name in given and not flag.is_what_happens(given[flag.name])
    ]
    if errors:
        raise FlagError.of(errors)


def _warnings_without_effect(given: GivenFlags) -> Iterator[str]:
    for flag in FLAGS:
        is_relevant = flag.name in given and not (flag.yields_to_config and given.get("config"))
        if is_relevant and flag.use is FlagUse.WITHOUT_EFFECT and not flag.is_what_happens(given[flag.name]):
            yield f"--{flag.name}={flag.kind.show(given[flag.name])} has no effect: {flag.why}"


def _log_settings(value: FlagValue) -> LogSettings:
    errors = ErrorList()
    form = value("logging-format")
    if value("log-flush-frequency").nanoseconds <= 0:
        errors.invalid("flushFrequency", value("log-flush-frequency"), "Must be greater than zero")
    if form not in _LOG_FORMATS:
        errors.invalid("format", form, "Unsupported log format")
    if value("vmodule") and form != "text":
        errors.forbidden("vmodule", "Only supported for text log format")
    if errors:
        raise FlagError.of([str(error) for error in errors])
    return LogSettings(format=form, verbosity=value("v"), vmodule=value("vmodule"))


def _checked(value: FlagValue) -> tuple[ServingSettings | None, MetricsSettings]:
    """What remains to be checked of flags, all errors at once."""
    metrics_errors = ErrorList()
    metrics = metrics_settings(value, metrics_errors)
    errors = [
        *check_versions(value("emulated-version"), value("min-compatibility-version")),
        *settings.serving_errors(value),
        *map(str, metrics_errors),
    ]
    if errors:
        raise FlagError.of(errors)
    try:
        return settings.serving_settings(value), metrics
    except ServingError as problem:
        raise FlagError(str(problem)) from None


def _path(text: str) -> Path | None:
    return Path(text) if text else None


_KUBE = "kube"


def read_gates(given: Iterable[tuple[str, str]]) -> tuple[FeatureGates, tuple[str, ...]]:
    """The gates, and warnings, from (component, `Gate=true`) as `--feature-gates` has them."""
    try:
        return check_gates(asked_gates(given))
    except GateError as problem:
        raise FlagError.of(list(problem.errors)) from None


def asked_gates(given: Iterable[tuple[str, str]]) -> dict[str, bool]:
    """What the flag says, unchecked."""
    return _asked(_gates_of_kube(tuple(given)))


def _gates_of_kube(given: tuple[tuple[str, str], ...]) -> Iterator[str]:
    components = {component for component, _ in given}
    if {"", _KUBE} <= components:
        raise FlagError("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    for component, text in given:
        if component not in ("", _KUBE):
            raise FlagError(f"component not registered: {component}")
        yield text


def _asked(texts: Iterable[str]) -> dict[str, bool]:
    """What was asked for, in order; the last one counts."""
    asked: dict[str, bool] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise FlagError(f"missing bool value for {name}")
        try:
            asked[name] = BOOL.parse(value)
        except ValueError as problem:
            raise FlagError(f"invalid value of {name}={value}, err: {problem}") from None
        if not is_known_gate(name, NEXT_VERSION):
            raise FlagError(f"unrecognized feature gate: {name}")
    return asked
