"""The diagrams show what the tables say, are used by a page, and keep their texts inside."""

import re
from xml.etree import ElementTree

import pytest
from tools.diagrams import PICTURES
from tools.diagrams.drawing import STYLE
from tools.diagrams.layers import contract
from tools.diagrams.steps import Row, apply, statement

from forge.core.lifecycle import LIFECYCLE, Status, Verb
from tests.surface.pages import CHECKOUT, PAGES

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("path", PICTURES)
def test_a_diagram_keeps_its_texts_inside_and_is_used(path: str) -> None:
    name = path.rpartition("/")[2]
    root = ElementTree.parse(CHECKOUT / path).getroot()

    width = float(root.attrib["width"])
    texts = [(float(text.attrib["x"]), text.text or "") for text in root.iter(f"{SVG}text")]
    assert len(texts) > 5
    assert [text for x, text in texts if not 4 * len(text) < x < width - 4 * len(text)] == []
    assert any(f"pictures/{name})" in page.read_text() for page in PAGES)


def test_diagram_of_the_lifecycle_has_each_status_and_verb() -> None:
    shown = _words("docs/pictures/lifecycle.svg")

    assert set(Status) <= shown
    assert {verb for _, verb in LIFECYCLE} <= shown


def test_diagram_of_the_layers_has_each_package() -> None:
    shown = _words("docs/pictures/layers.svg")

    assert set(" ".join(contract()).split()) - {"|", ":"} <= shown


def test_steps_of_a_diagram_must_be_possible() -> None:
    assert apply(Row(), Verb.CLAIM, Verb.START) == Row(Status.RUNNING, 1)

    with pytest.raises(ValueError, match="the lifecycle has no claim from completed"):
        apply(Row(Status.COMPLETED, 1), Verb.CLAIM)
    with pytest.raises(ValueError, match=r"no statement sql/jobs/gone\.sql"):
        statement("jobs/gone")


def _words(path: str) -> set[str]:
    texts = ElementTree.parse(CHECKOUT / path).getroot().iter(f"{SVG}text")
    return {word for text in texts for word in (text.text or "").replace(",", "").split()}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_of_a_diagram_can_be_read_on_each_of_its_colours(scheme: int) -> None:
    colours = [
        dict(re.findall(r"--(\w+): #(\w{6})", rule))
        for rule in re.findall(r":root {([^}]*)}", STYLE)
    ][scheme]

    grounds = ("page", "box", "good", "bad", "busy")
    ratios = {
        (text, ground): _contrast(colours[text], colours[ground])
        for text in ("ink", "soft")
        for ground in grounds
    }
    assert min(ratios.values()) >= 4.5, ratios  # as WCAG asks for texts of this size


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
