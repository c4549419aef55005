"""The libraries of Kubernetes: quantities, versions, addresses, URLs and named formats."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel
from kubesched.k8s.model import quantity

DEVICE = cel.DeviceView.of("d", {"text": "a"}, {"memory": quantity.parse("40Gi"), "huge": quantity.parse("200Ti")})


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("quantity('1Ki') == quantity('1024') && quantity('0.2G') == quantity('200M')", id="equal amounts"),
        pytest.param("quantity('50M').isLessThan(quantity('50Mi'))", id="less"),
        pytest.param("quantity('50Mi').isGreaterThan(quantity('50M'))", id="greater"),
        pytest.param(
            "quantity('1').compareTo(quantity('1')) == 0 && quantity('1').compareTo(quantity('2')) == -1", id="cmp"
        ),
        pytest.param("sign(quantity('-1')) == -1 && sign(quantity('0')) == 0", id="sign"),
        pytest.param("quantity('50k').add(quantity('20')) == quantity('50.02k')", id="sums"),
        pytest.param(
            "quantity('50k').add(20).sub(quantity('100k')).sub(-50000).asInteger() == 20", id="sums of numbers"
        ),
        pytest.param("quantity('50k').isInteger() && quantity('50k').asInteger() == 50000", id="integers"),
        pytest.param("!quantity('1000m').isInteger() && !quantity('1.0').isInteger()", id="written with a fraction"),
        pytest.param("!quantity('100Ti').isInteger() && quantity('99Gi').isInteger()", id="kept as a decimal"),
        pytest.param("quantity('50.703k').asApproximateFloat() == 50703.0", id="approximately"),
        pytest.param("isQuantity('20Mi') && !isQuantity('20Mo') && !isQuantity('')", id="what is a quantity"),
        pytest.param("device.capacity['d'].memory == quantity('40Gi')", id="of a device"),
        pytest.param("device.capacity['d'].memory.asInteger() == 42949672960", id="of a device as an integer"),
        pytest.param("!device.capacity['d'].huge.isInteger()", id="of a device, too large to be an integer"),
        pytest.param("quantity('2') != quantity('1').add(1)", id="a sum on the right equals nothing"),
    ],
)
def test_quantities(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("quantity('10Mm') == quantity('1')", "unable to parse quantity's suffix", id="suffix unknown"),
        pytest.param(
            "quantity('1.5').asInteger() == 1", "cannot convert value to integer", id="fraction as an integer"
        ),
        pytest.param("quantity('2') == quantity('1').add(1)", "no such overload", id="a sum on the right of equals"),
        pytest.param(
            "device.attributes['d'].text.isGreaterThan(quantity('1'))",
            "no such overload: isGreaterThan(string, kubernetes.Quantity)",
            id="a string as a quantity",
        ),
    ],
)
def test_quantities_that_fail(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("semver('1.2.3').isGreaterThan(semver('1.2.2'))", id="by patch"),
        pytest.param("semver('1.10.0').compareTo(semver('1.9.0')) == 1", id="by number, not by text"),
        pytest.param("semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))", id="before its release"),
        pytest.param("semver('1.0.0-alpha').isLessThan(semver('1.0.0-alpha.1'))", id="fewer parts come first"),
        pytest.param("semver('1.0.0-2').isLessThan(semver('1.0.0-10'))", id="numbers within pre-releases"),
        pytest.param("semver('1.0.0-10').isLessThan(semver('1.0.0-a'))", id="numbers before texts"),
        pytest.param("semver('1.0.0+a') == semver('1.0.0+b')", id="build metadata counts for nothing"),
        pytest.param(
            "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3", id="parts"
        ),
        pytest.param("semver('v01.2', true) == semver('1.2.0')", id="normalised"),
        pytest.param("isSemver('1.2.3') && !isSemver('v1.2.3') && isSemver('v1.2.3', true)", id="what is a version"),
        pytest.param("!isSemver('1.2-rc', true) && !isSemver('01.2.3') && !isSemver('1.2.3-')", id="what is none"),
    ],
)
def test_versions(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "Version string empty", id="nothing"),
        pytest.param("1.2", "No Major.Minor.Patch elements found", id="two parts"),
        pytest.param("a.2.3", 'Invalid character(s) found in major number "a"', id="letters"),
        pytest.param("1.02.3", 'Minor number must not contain leading zeroes "02"', id="leading zero"),
        pytest.param("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"', id="pre-release"),
        pytest.param("1.2.3+", "Build meta data is empty", id="empty metadata"),
        pytest.param("1..3", 'strconv.ParseUint: parsing "": invalid syntax', id="empty part"),
    ],
)
def test_what_is_no_version(text: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(f"semver('{text}') == semver('1.0.0')").evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("ip('127.0.0.1').family() == 4 && ip('::1').family() == 6", id="families"),
        pytest.param("ip('127.0.0.1').isLoopback() && ip('::').isUnspecified()", id="special addresses"),
        pytest.param(
            "ip('169.254.1.1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()", id="link-local"
        ),
        pytest.param("ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()", id="global"),
        pytest.param("ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1')", id="canonical form"),
        pytest.param(
            "isIP('1.2.3.4') && !isIP('1.2.3.04') && !isIP('::ffff:1.2.3.4') && !isIP('fe80::1%a')", id="valid"
        ),
        pytest.param("string(ip('2001:DB8::0:1')) == '2001:db8::1' && ip('::1') == ip('0::1')", id="text and equality"),
        pytest.param(
            "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('::/0').containsIP(ip('::1'))", id="containing"
        ),
        pytest.param(
            "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')",
            id="nets",
        ),
        pytest.param(
            "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')", id="parts"
        ),
        pytest.param(
            "cidr('::/64').prefixLength() == 64 && string(cidr('10.0.0.1/8')) == '10.0.0.1/8'", id="prefix and text"
        ),
        pytest.param("isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08')", id="valid networks"),
    ],
)
def test_addresses(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("1.2.3.256", "IPv4 field has value >255", id="number too large"),
        pytest.param("1.2.3", "IPv4 address too short", id="numbers too few"),
        pytest.param("1.2.3.4.5", "IPv4 address too long", id="numbers too many"),
        pytest.param("1.2.3.04", "IPv4 field has octet with leading zero", id="leading zero"),
        pytest.param("1..3.4", 'IPv4 field must have at least one digit (at ".3.4")', id="number missing"),
        pytest.param("1.2.3.x", 'unexpected character (at "x")', id="letter"),
        pytest.param("host", "unable to parse IP", id="name"),
        pytest.param("1:2", "address string too short", id="groups too few"),
        pytest.param("1:::2", "each colon-separated field must have at least one digit", id="colons too many"),
    ],
)
def test_what_is_no_address(text: str, reason: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(f"ip('{text}') == ip('::1')").evaluate(DEVICE)
    assert str(failed.value) == (
        f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): {reason}'
    )


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("url('https://a.com:80/b').getScheme() == 'https'", id="scheme"),
        pytest.param("url('https://a.com:80/b').getHost() == 'a.com:80'", id="host"),
        pytest.param(
            "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'", id="port"
        ),
        pytest.param("url('https://a.com/b c/').getEscapedPath() == '/b%20c/'", id="path"),
        pytest.param("url('https://a.com/?k=a&l=b&l=c+d').getQuery() == {'k': ['a'], 'l': ['b', 'c d']}", id="query"),
        pytest.param("isURL('/a/b') && !isURL('a/b') && !isURL('https://a:b/') && !isURL('')", id="valid"),
        pytest.param("url('https://a.com/#x') == url('https://a.com/#x')", id="equality"),
        pytest.param("format.dns1123Label().validate('my-name') == optional.none()", id="a good name"),
        pytest.param("format.dns1123Label().validate('a.b').value() == ['must not contain dots']", id="a bad name"),
        pytest.param("format.qualifiedName().validate('a/b/c').hasValue()", id="a bad label key"),
        pytest.param("!format.dns1123LabelPrefix().validate('my-').hasValue()", id="a name with more to come"),
        pytest.param(
            "format.named('uuid').value().validate('x').value() == ['does not match the UUID format']", id="uuid"
        ),
        pytest.param("!format.datetime().validate('2020-01-01T00:00:00Z').hasValue()", id="a date and time"),
        pytest.param("format.date().validate('2020-02-30').value() == ['invalid date']", id="no date"),
        pytest.param("!format.named('nothing').hasValue() && format.uri() == format.uri()", id="formats by name"),
    ],
)
def test_urls_and_formats(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True
