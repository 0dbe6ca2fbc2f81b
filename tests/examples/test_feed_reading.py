"""Untrusted feed content."""

import httpx
from examples.feeds.reading import Entry, read

FEED = b"""
<rss version="2.0"><channel>
    <title>n&#0;ews</title>
    <item>
        <title>fi&#0;rst</title>
        <link>http://site/&#0;1</link>
        <guid isPermaLink="false">o&#0;ne</guid>
    </item>
</channel></rss>
"""


def test_stored_text_has_no_nul_characters() -> None:
    answer = httpx.Response(200, request=httpx.Request("GET", "http://site/feed"))

    found = read(FEED, answer)

    assert found.title == "news"
    assert found.entries == [Entry("one", "first", "http://site/1", None)]
