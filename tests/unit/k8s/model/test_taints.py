"""Which taints a toleration covers."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.core import Taint, Toleration
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, find_untolerated, tolerates

GPU = Taint(key="gpu", effect=NO_SCHEDULE, value="a100")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(Toleration(key="gpu", value="a100", effect=NO_SCHEDULE), True, id="no operator means Equal"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="a100"), True, id="no effect covers every effect"),
        pytest.param(Toleration(key="gpu", operator="Equal", value="h100"), False, id="another value"),
        pytest.param(Toleration(key="gpu"), False, id="Equal without a value means the empty value"),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="Exists asks for the key only"),
        pytest.param(Toleration(key="gpu", operator="Exists", value="h100"), True, id="Exists ignores the value"),
        pytest.param(Toleration(operator="Exists"), True, id="Exists without a key covers everything"),
        pytest.param(Toleration(operator="Exists", effect=NO_EXECUTE), False, id="but only its effect"),
        pytest.param(Toleration(key="gpu", operator="Exists", effect=NO_EXECUTE), False, id="another effect"),
        pytest.param(Toleration(key="spot", operator="Exists"), False, id="another key"),
        pytest.param(Toleration(value="a100"), True, id="Equal without a key asks for the value only"),
        pytest.param(Toleration(key="gpu", operator="Gt", value="1"), False, id="an operator that is switched off"),
        pytest.param(Toleration(key="gpu", operator="Sometimes", value="a100"), False, id="an unknown operator"),
    ],
)
def test_a_toleration_covers_a_taint(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, GPU) is covers


def test_the_first_taint_that_is_not_tolerated_is_found() -> None:
    soft = Taint(key="soft", effect=PREFER_NO_SCHEDULE)
    spot = Taint(key="spot", effect=NO_EXECUTE)
    taints = (soft, GPU, spot)
    assert find_untolerated(taints, ()) == GPU
    assert find_untolerated(taints, (Toleration(key="gpu", operator="Exists"),)) == spot
    assert find_untolerated(taints, (Toleration(operator="Exists"),)) is None
    assert find_untolerated(taints, (), effects=(PREFER_NO_SCHEDULE,)) == soft


def test_each_toleration_is_asked_about_every_taint() -> None:
    tolerations = (Toleration(key=key, operator="Exists") for key in ("spot", "gpu"))
    assert find_untolerated((GPU, Taint(key="spot", effect=NO_EXECUTE)), tolerations) is None
