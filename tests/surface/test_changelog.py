"""The changelog: each change once, each kind of change once per version."""

import re

from tests.surface.pages import CHECKOUT

CHANGELOG = (CHECKOUT / "CHANGELOG.md").read_text()


def test_no_change_is_listed_twice() -> None:
    starts = [line[:50] for line in CHANGELOG.splitlines() if line.startswith("- ")]

    assert [start for start in starts if starts.count(start) > 1] == []
    assert len(starts) > 20


def test_each_version_has_a_section_of_a_kind_once() -> None:
    for version in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        sections = re.findall(r"^#{3,4} (.+)$", version, re.MULTILINE)

        assert len(sections) == len(set(sections))
        assert set(re.findall(r"^### (.+)$", version, re.MULTILINE)) <= {
            "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"
        }  # fmt: skip
