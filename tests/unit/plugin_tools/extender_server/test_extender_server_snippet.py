"""The configuration that is printed for kube-scheduler: readable, and asking for what the plugins answer."""

from __future__ import annotations

import pytest
from served_plugins import AtMostTwo, Binder, Tiers, cluster_of, profiles_of

from kubesched.framework import OK, PodInfo, Status
from kubesched.plugin_tools.extender_server.outside_profiles import (
    Endpoint,
    NoPluginsError,
    configuration_yaml,
    extender_configuration,
)
from kubesched.scheduler.config import ConfigError, ExtenderConfiguration, load

HTTP = Endpoint("http://127.0.0.1:8888")


def printed(
    *plugins: type, endpoint: Endpoint = HTTP, follows: bool = True, binds: bool = False
) -> ExtenderConfiguration:
    profiles = profiles_of(cluster_of(), *plugins)
    extender = extender_configuration(profiles, endpoint, is_followed=follows, binds=binds)
    (found,) = load(configuration_yaml(extender, list(profiles.by_name)), "printed").extenders
    return found


def verbs(extender: ExtenderConfiguration) -> set[str]:
    found = (extender.filter_verb, extender.prioritize_verb, extender.preempt_verb, extender.bind_verb)
    return {verb for verb in found if verb}


@pytest.mark.parametrize(
    ("extender", "expected"),
    [
        pytest.param(printed(Tiers), {"filter", "prioritize", "preempt"}, id="filter and score"),
        pytest.param(printed(AtMostTwo), {"filter", "preempt"}, id="filter only"),
        pytest.param(printed(Binder), {"bind"}, id="bind only"),
        pytest.param(printed(AtMostTwo, binds=True), {"filter", "preempt", "bind"}, id="bind asked for"),
        pytest.param(printed(Tiers, follows=False), {"filter", "prioritize"}, id="without a cluster"),
    ],
)
def test_verbs_are_those_that_the_plugins_answer(extender: ExtenderConfiguration, expected: set[str]) -> None:
    assert verbs(extender) == expected


def test_the_extender_weighs_what_its_plugins_weigh() -> None:
    assert printed(Tiers).weight == 3


@pytest.mark.parametrize("follows", [True, False], ids=["followed", "not followed"])
def test_names_of_nodes_are_enough_where_a_cluster_is_followed(follows: bool) -> None:
    assert printed(Tiers, follows=follows).node_cache_capable is follows


def test_https_is_verified_with_the_server_s_own_certificate() -> None:
    extender = printed(Tiers, endpoint=Endpoint("https://127.0.0.1:8888", ca_file="/etc/tls.crt"))
    assert extender.enable_https
    assert extender.tls_config is not None and extender.tls_config.ca_file == "/etc/tls.crt"


def test_profiles_are_listed_where_they_have_names_of_their_own() -> None:
    profiles = profiles_of(
        cluster_of(), Tiers, config={"profiles": [{"schedulerName": "one"}, {"schedulerName": "two"}]}
    )
    extender = extender_configuration(profiles, HTTP, is_followed=True, binds=False)
    config = load(configuration_yaml(extender, list(profiles.by_name)), "printed")
    assert [profile.scheduler_name for profile in config.profiles] == ["one", "two"]


def test_stages_that_extenders_are_not_asked_about_are_told() -> None:
    class Gate:
        name = "Gate"

        def pre_enqueue(self, pod: PodInfo) -> Status:
            return OK

    assert profiles_of(cluster_of(), Tiers, Gate).unserved == {"Gate": ("preEnqueue",)}


def test_without_a_plugin_of_one_s_own_there_is_nothing_to_serve() -> None:
    with pytest.raises(NoPluginsError, match="--plugin"):
        profiles_of(cluster_of())


def test_the_configuration_decides_over_plugins_that_it_mentions() -> None:
    config = {
        "profiles": [
            {"plugins": {"score": {"disabled": [{"name": "Tiers"}]}, "filter": {"enabled": [{"name": "Tiers"}]}}}
        ]
    }
    profiles = profiles_of(cluster_of(), Tiers, config=config)
    assert (profiles.filters, profiles.scores) == (True, False)


def test_mistakes_in_the_configuration_are_told() -> None:
    with pytest.raises(ConfigError, match="Missing"):
        profiles_of(
            cluster_of(), Tiers, config={"profiles": [{"plugins": {"filter": {"enabled": [{"name": "Missing"}]}}}]}
        )
