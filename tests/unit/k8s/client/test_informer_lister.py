"""Looking up what an informer knows: by name, by namespace, by indexes of one's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.k8s.client.list_watch import IndexedLister
from kubesched.k8s.model.core import Pod, PodSpec
from kubesched.k8s.model.meta import ObjectMeta


def pod(name: str, namespace: str = "default", node: str = "") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=namespace), spec=PodSpec(node_name=node))


def by_node(item: Pod) -> list[str]:
    return [item.spec.node_name] if item.spec.node_name else []


def filled(*pods: Pod) -> IndexedLister[Pod]:
    lister: IndexedLister[Pod] = IndexedLister({"node": by_node})
    for item in pods:
        lister.put(item.key, item)
    return lister


def test_objects_are_found_by_name_and_by_key() -> None:
    a = pod("a")
    lister = filled(a)
    assert lister.get("a", "default") is a
    assert lister.get_by_key("default/a") is a
    assert lister.get("a") is None


def test_a_namespace_lists_only_its_own() -> None:
    lister = filled(pod("b"), pod("a"), pod("a", "other"))
    assert [item.key for item in lister.list_all("default")] == ["default/a", "default/b"]
    assert len(lister.list_all()) == len(lister) == 3
    lister.remove("other/a")
    assert lister.list_all("other") == []


def test_an_index_follows_changes() -> None:
    lister = filled(pod("a"), pod("b", node="n1"))
    lister.put("default/a", pod("a", node="n1"))
    assert [item.name for item in lister.by_index("node", "n1")] == ["a", "b"]
    lister.put("default/b", pod("b", node="n2"))
    assert [item.name for item in lister.by_index("node", "n1")] == ["a"]
    lister.remove("default/a")
    assert lister.by_index("node", "n1") == []


def test_an_index_added_later_has_what_is_there() -> None:
    lister = filled(pod("a", node="n1"))
    lister.add_index("first letter", lambda item: [item.name[0]])
    assert [item.name for item in lister.by_index("first letter", "a")] == ["a"]


def test_an_index_is_added_only_once() -> None:
    with pytest.raises(ValueError, match="there is an index 'node' already"):
        filled().add_index("node", by_node)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from(["", "n1", "n2", None]))))
def test_indexes_equal_a_search_through_all(changes: list[tuple[str, str, str | None]]) -> None:
    lister = filled()
    for name, namespace, node in changes:
        if node is None:
            lister.remove(f"{namespace}/{name}")
        else:
            lister.put(f"{namespace}/{name}", pod(name, namespace, node))
    for node in ("n1", "n2"):
        searched = sorted(item.key for item in lister if item.spec.node_name == node)
        assert [item.key for item in lister.by_index("node", node)] == searched
    for namespace in "xy":
        assert [item.key for item in lister.list_all(namespace)] == sorted(
            item.key for item in lister if item.namespace == namespace
        )
