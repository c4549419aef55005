"""Pods that say so stay off spot nodes."""

from __future__ import annotations

from example_plugins import EXAMPLES, objects_of, placed, plugin_of

from kubesched.testing import make

AVOID_SPOT = plugin_of("ten-lines")


def test_it_is_ten_lines() -> None:
    assert (EXAMPLES / "ten-lines" / "avoid_spot.py").read_text().count("\n") == 10


def test_the_pod_goes_to_the_smaller_node_that_is_no_spot_node() -> None:
    objects = objects_of("ten-lines")
    assert placed(objects, "shop/database", []).node_name == "spot-1"
    assert placed(objects, "shop/database", [AVOID_SPOT]).node_name == "steady-1"


def test_the_message_has_its_reason() -> None:
    objects = [make.node("a", labels={"spot": "true"}), make.pod("db", labels={"spot": "never"})]
    message = placed(objects, "default/db", [AVOID_SPOT]).message
    assert message.startswith("0/1 nodes are available: 1 node(s) were spot nodes.")


def test_pods_that_do_not_say_so_may_go_anywhere() -> None:
    objects = [make.node("a", labels={"spot": "true"}), make.pod("web")]
    assert placed(objects, "default/web", [AVOID_SPOT]).node_name == "a"
