"""Validity of texts by format: the values that kube-apiserver 1.36.3 accepted and refused."""

from __future__ import annotations

import pytest

from steersman.schema.formats import FORMATS

TAKEN = {
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
    "byte": ["aGVsbG8=", "YQ==", "ab=="],
    "cidr": ["10.0.0.0/8", "::/0", "010.0.0.0/08", "fe80::/10", "::ffff:1.2.3.4/100"],
    "creditcard": ["4111111111111111", "4111 1111 1111 1111", "378282246310005", "3530111333300000"],
    "date": ["2020-01-02", "0000-01-01", "2020-02-29"],
    "datetime": [
        "2020-01-02T03:04:05Z",
        "2020-01-02t03:04:05.5+01:00",
        "2020-01-02T03:04:05zTx",
        "2020-01-02T03:04:05+99:99",
        "2020-01-02T03:04:05x12Z",
    ],
    "duration": ["1h", "3 days", "1.5h", "-5s", "5 weeks 2 mon", "1 microfoo", "0", "1d2x", "1 µs", "7 HR"],
    "email": [
        "a@b",
        "N <a@b.c>",
        '"x y"@b',
        "a@[1.2.3.4]",
        "a@b (c)",
        "g: a@b;",
        "=?utf-8?q?x?= <a@b>",
        "ä@ö",
        "a@ b",
        "<a@b>",
        "x =?foo?q?x?= <a@b>",
        "g: x <a@b>; (c)",
        "  a@b  ",
        '"" <a@b>',
    ],
    "hexcolor": ["#fff", "fff", "ffaa00"],
    "hostname": ["a", "a-", "a-b", "a.bc", "ä.öü", "☃.com", "A" * 63 + ".com"],
    "ipv4": ["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"],
    "ipv6": ["::1", "::ffff:1.2.3.4"],
    "isbn": ["0321751043", "978-0321751041", "3 401 01319 X"],
    "isbn10": ["0321751043", "3-401-01319-X"],
    "isbn13": ["9780321751041"],
    "k8slongname": ["a.b", "a", ".".join(["a" * 60] * 4)],
    "k8sshortname": ["a", "a-b", "a" * 63],
    "mac": ["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", "001122334455", "02:00:5e:10:00:00:00:01"],
    "password": ["", "x"],
    "rgbcolor": ["rgb(1,2,3)", "rgb( 1 , 2 , 3 )", "rgb(255,255,255)"],
    "ssn": ["111-22-3333", "111 22 3333"],
    "uri": ["http://a", "/x", "mailto:x", "http://[::1]", "http://a:80", "*", "http:", "//a/b", "http://[::1%25eth0]/"],
    "uuid": ["4f0c3e7e-2c0f-4a0c-9b2e-6b0a3f6c1d11", "4F0C3E7E2C0F1A0C0B2E6B0A3F6C1D11"],
    "uuid3": ["4f0c3e7e-2c0f-3a0c-cb2e-6b0a3f6c1d11"],
    "uuid4": ["4f0c3e7e-2c0f-4a0c-9b2e-6b0a3f6c1d11"],
    "uuid5": ["4f0c3e7e-2c0f-5a0c-Ab2e-6b0a3f6c1d11"],
}
REFUSED = {
    "bsonobjectid": ["507", ""],
    "byte": ["", "=", "====", "a-_b", "aGVsbG8"],
    "cidr": ["1.2.3.4/33", "1.2.3/8", "10.0.0.0"],
    "creditcard": ["4111111111111112", "6500000000000", ""],
    "date": ["2019-02-29", "10000-01-01", "2020-1-2", "2020-13-01", "٢٠٢٠-01-02"],
    "datetime": ["2020-01-02T23:59:60Z", "2020-01-02 03:04:05Z", "2020-01-02T03:04:05", "T"],
    "duration": ["22", "1 wks", "1parsec", "99999999999999999999 s", "", "1 h 99999999999999999999 s"],
    "email": [
        "nobody",
        "a@[x]",
        "a@b (c",
        "g:;",
        "g: a@b, c@d;",
        "=?foo?q?x?= <a@b>",
        "a@b (=?foo?q?x?=)",
        "a..b@c",
        "a.@b",
        "a@.b",
        "a@b,",
        "a @b",
        "<a@b",
        "a b",
        "a@b\n",
        "(c) a@b",
        "a@b (=?foo?b?\\?=)",
    ],
    "hexcolor": ["#ffff", "#GGG", "#fff\n"],
    "hostname": [
        "ab-c",
        "a.b",
        "-a.com",
        "a-.com",
        "x.co1",
        "*.com",
        "a.☃☃",
        "a..com",
        "a.com.",
        "1.2.3.4",
        "☃" * 22 + ".com",
    ],
    "ipv4": ["1.2.3", "256.1.1.1", "::1", "1.2.3.4 "],
    "ipv6": ["fe80::1%eth0", "1.2.3.4", "::ffff:01.2.3.4", "1::2::3", "g::", "00000::1", ":"],
    "isbn": ["123", ""],
    "isbn10": ["340101319x", "9780321751041"],
    "isbn13": ["9780321751042"],
    "k8slongname": ["a..b", "a.-b", "A.", "a" * 254],
    "k8sshortname": ["A", "-a", "a" * 64, "a.b", ""],
    "mac": ["00:11:22:33:44", "00:11-22:33:44:55", "0:1:2:3:4:5", "0011.2233", "00112233445566"],
    "rgbcolor": ["rgb(256,1,1)", "rgb(01,1,1)", "RGB(1,1,1)", "rgb(1\v,2,3)"],
    "ssn": ["111223333", "111-22-33334"],
    "uri": [
        "a",
        "",
        "http://a b",
        "http://[::1",
        "http://a:x",
        "http://a%zz",
        "http://a\x7f",
        "1http://x",
        "?",
        "http://%41",
    ],
    "uuid": ["xyz", "4f0c3e7e-2c0f-4a0c-9b2e-6b0a3f6c1d1"],
    "uuid3": ["4f0c3e7e-2c0f-4a0c-9b2e-6b0a3f6c1d11"],
    "uuid4": ["4f0c3e7e-2c0f-4a0c-cb2e-6b0a3f6c1d11"],
    "uuid5": ["4f0c3e7e-2c0f-5a0c-cb2e-6b0a3f6c1d11"],
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats(name: str) -> None:
    assert [text for text in TAKEN[name] if not FORMATS[name](text)] == []
    assert [text for text in REFUSED.get(name, ()) if FORMATS[name](text)] == []


@pytest.mark.parametrize(
    "text", ["1" * 200_000, "1 " * 100_000, "a@" * 100_000, "(" * 200_000, "☃" * 200_000, '"' * 200_000]
)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_long_texts_are_judged_at_once(name: str, text: str) -> None:
    """It takes milliseconds; what grows as the square of a text would take minutes."""
    FORMATS[name](text)
