"""Label keys, label values and extended resource names are judged in Kubernetes' words."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.requests import is_extended
from kubesched.k8s.model.selectors import label_key_errors, label_value_errors

NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX_PART = (
    "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("zone", [], id="a name"),
        pytest.param("topology.kubernetes.io/zone", [], id="a name with a prefix"),
        pytest.param("a" * 63, [], id="the longest name"),
        pytest.param("a" * 64, ["name part must be no more than 63 bytes"], id="a name too long"),
        pytest.param("", ["name part must be non-empty", NAME_PART], id="nothing"),
        pytest.param("-a", [NAME_PART], id="a bad start"),
        pytest.param("a\n", [NAME_PART], id="a line break at the end"),
        pytest.param("/a", ["prefix part must be non-empty"], id="an empty prefix"),
        pytest.param("A.b/c", [PREFIX_PART], id="a prefix with capitals"),
        pytest.param(f"{'a' * 254}/b", ["prefix part must be no more than 253 bytes"], id="a prefix too long"),
        pytest.param(
            "a/b/c",
            [
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
                "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix "
                "and '/' (e.g. 'example.com/MyName')"
            ],
            id="two slashes",
        ),
    ],
)
def test_label_keys(key: str, expected: list[str]) -> None:
    assert list(label_key_errors(key)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("a_b.c-1", [], id="all allowed characters"),
        pytest.param("ä" * 32, ["must be no more than 63 bytes", "pattern"], id="bytes count, not characters"),
        pytest.param("a b", ["pattern"], id="a blank"),
    ],
)
def test_label_values(value: str, expected: list[str]) -> None:
    pattern = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )
    assert list(label_value_errors(value)) == [pattern if error == "pattern" else error for error in expected]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("example.com/gpu", True, id="a domain of its own"),
        pytest.param("cpu", False, id="a native resource"),
        pytest.param("kubernetes.io/x", False, id="Kubernetes' own domain"),
        pytest.param("sub.kubernetes.io/x", False, id="below Kubernetes' own domain"),
        pytest.param("requests.example.com/x", False, id="the prefix that quotas use"),
        pytest.param(f"{'a' * 250}/x", False, id="too long with the prefix that quotas use"),
    ],
)
def test_extended_resource_names(name: str, expected: bool) -> None:
    assert is_extended(name) is expected
