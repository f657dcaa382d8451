"""Text in XML documents."""

from __future__ import annotations

from xml.etree import ElementTree

from steersman.machinery.codec.xml_text import xml_text


def test_any_text_makes_a_document_that_can_be_read() -> None:
    text = "".join(map(chr, (*range(0x80), 0x85, 0x2028, 0xD800, 0xDFFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000)))
    element = ElementTree.Element("a")
    element.text = xml_text(text)
    read = ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8")).text or ""
    assert len(read) == len(text)
    assert "a<b>&\t\n" in xml_text("a<b>&\t\n")
