"""A configuration written out and loaded again is the same configuration."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kubesched.scheduler.config import KubeSchedulerConfiguration, default, load, to_manifest, to_yaml
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.load import parse
from kubesched.scheduler.config.plugin_args import API_VERSION

HEADER = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}

plugin_names = st.sampled_from(["NodeAffinity", "NodeResourcesFit", "ImageLocality", "DefaultBinder", "Mine", "Other"])
seconds = st.integers(1, 10**6).map(lambda n: f"{n}ms")
resource_names = st.sampled_from(["cpu", "memory", "example.com/gpu", "hugepages-2Mi"])
texts = st.text("ayn0.1e:-#'\"{}~* ä😀\n", max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def fields(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


def plugin_sets() -> st.SearchStrategy[dict[str, Any]]:
    enabled = st.lists(
        st.fixed_dictionaries({"name": plugin_names}, optional={"weight": st.integers(0, 100)}),
        max_size=4,
        unique_by=lambda plugin: plugin["name"],
    )
    disabled = st.lists(st.fixed_dictionaries({"name": plugin_names | st.just("*")}), max_size=3)
    return fields(enabled=enabled, disabled=disabled)


requirements = st.sampled_from(
    [
        {"key": "zone", "operator": "In", "values": ["a", "b"]},
        {"key": "gpu", "operator": "Exists"},
        {"key": "gpu", "operator": "Exists", "values": []},
        {"key": "size", "operator": "Gt", "values": ["3"]},
    ]
)
terms = fields(matchExpressions=st.lists(requirements, max_size=2))
affinities = fields(
    requiredDuringSchedulingIgnoredDuringExecution=fields(nodeSelectorTerms=st.lists(terms, max_size=2)),
    preferredDuringSchedulingIgnoredDuringExecution=st.lists(
        st.fixed_dictionaries({"weight": st.integers(0, 100), "preference": terms}), max_size=2
    ),
)
resources = st.lists(
    st.fixed_dictionaries({"name": resource_names}, optional={"weight": st.integers(0, 100)}), max_size=3
)
strategies = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["LeastAllocated", "MostAllocated"]), "resources": resources}),
    st.just(
        {
            "type": "RequestedToCapacityRatio",
            "requestedToCapacityRatio": {"shape": [{"utilization": 0}, {"utilization": 90, "score": 10}]},
        }
    ),
)
args_by_plugin = {
    "DefaultPreemption": fields(minCandidateNodesPercentage=st.integers(1, 100)),
    "DynamicResources": fields(filterTimeout=seconds, bindingTimeout=st.just("1m30s")),
    "InterPodAffinity": fields(
        hardPodAffinityWeight=st.integers(0, 100), ignorePreferredTermsOfExistingPods=st.booleans()
    ),
    "NodeAffinity": fields(addedAffinity=affinities),
    "NodeResourcesBalancedAllocation": fields(resources=resources.map(lambda given: given[:1])).map(
        lambda args: {**args, "resources": [{"name": spec["name"]} for spec in args.get("resources", [])]}
    ),
    "NodeResourcesFit": fields(ignoredResources=st.lists(resource_names, max_size=2), scoringStrategy=strategies),
    "PodTopologySpread": st.just(
        {
            "defaultingType": "List",
            "defaultConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        }
    ),
    "VolumeBinding": fields(bindTimeoutSeconds=st.integers(0, 2**63 - 1)),
    "Mine": st.none() | st.dictionaries(texts, json_values, max_size=3),
}
plugin_configs = st.sets(st.sampled_from(sorted(args_by_plugin))).flatmap(
    lambda names: st.tuples(
        *(st.fixed_dictionaries({"name": st.just(name), "args": args_by_plugin[name]}) for name in sorted(names))
    ).map(list)
)
profiles = fields(
    percentageOfNodesToScore=st.integers(0, 100),
    plugins=fields(multiPoint=plugin_sets(), score=plugin_sets(), preBind=plugin_sets(), placementScore=plugin_sets()),
    pluginConfig=plugin_configs,
)
extenders = fields(
    urlPrefix=texts,
    filterVerb=texts,
    weight=st.integers(0, 2**63 - 1),
    enableHTTPS=st.booleans(),
    httpTimeout=seconds,
    tlsConfig=fields(insecure=st.booleans(), caData=st.sampled_from(["", "aGk=", "//79"])),
    ignorable=st.booleans(),
)
manifests = fields(
    parallelism=st.integers(1, 2**31 - 1),
    leaderElection=fields(leaderElect=st.booleans(), retryPeriod=seconds, resourceName=texts),
    clientConnection=fields(qps=st.floats(0, 1e9), burst=st.integers(0, 1000), kubeconfig=texts),
    enableProfiling=st.booleans(),
    profiles=st.lists(profiles, max_size=2).map(
        lambda given: [{"schedulerName": f"s{index}", **profile} for index, profile in enumerate(given)]
    ),
    extenders=st.lists(extenders, max_size=2),
    delayCacheUntilActive=st.booleans(),
).map(lambda given: HEADER | given)


@settings(max_examples=50, deadline=None)
@given(manifests)
def test_what_is_written_out_loads_back_equal(manifest: dict[str, Any]) -> None:
    config = load(manifest, "generated")
    written = to_manifest(config)
    event(f"profiles: {len(config.profiles)}, extenders: {len(config.extenders)}")
    assert load(written, "mapping") == config
    assert load(json.dumps(written), "JSON") == config
    assert load(to_yaml(written), "YAML") == config
    assert to_manifest(load(written, "again")) == written


def test_the_default_manifest_names_every_field_that_has_a_value() -> None:
    manifest = to_manifest(default())
    assert list(manifest) == [
        "apiVersion",
        "kind",
        "parallelism",
        "leaderElection",
        "clientConnection",
        "enableProfiling",
        "enableContentionProfiling",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "profiles",
        "delayCacheUntilActive",
    ]
    assert manifest["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "kube-scheduler",
        "resourceNamespace": "kube-system",
    }
    (profile,) = manifest["profiles"]
    assert list(profile) == ["schedulerName", "plugins", "pluginConfig"]
    assert list(profile["plugins"]) == ["multiPoint"]
    assert profile["plugins"]["multiPoint"]["enabled"][4] == {"name": "TaintToleration", "weight": 3}
    assert profile["pluginConfig"][1] == {
        "name": "DynamicResources",
        "args": {
            "apiVersion": API_VERSION,
            "kind": "DynamicResourcesArgs",
            "filterTimeout": "10s",
            "bindingTimeout": "10m0s",
        },
    }


@pytest.mark.parametrize("text", ["y", "No", "1e3", "017", "1:30", "2026-01-02", "~", "", "<<", "=", "a: b", "#", "0s"])
def test_text_that_looks_like_something_else_stays_text_in_yaml(text: str) -> None:
    written = to_yaml({"a": text})
    assert parse(written, "kubernetes", ErrorList()) == {"a": text}
    assert yaml.safe_load(written) == {"a": text}


def test_the_manifest_shares_nothing_with_the_configuration() -> None:
    given: dict[str, Any] = {"list": [1]}
    config: KubeSchedulerConfiguration = load(
        {**HEADER, "profiles": [{"pluginConfig": [{"name": "Mine", "args": given}]}]}, "test"
    )
    to_manifest(config)["profiles"][0]["pluginConfig"][0]["args"]["list"].append(2)
    assert config.profiles[0].plugin_config[0].args == {"list": [1]}
