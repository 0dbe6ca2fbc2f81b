"""Values that are hidden when shown, and never keep a job from being dispatched."""

import re

# What the patterns below cannot do without, in lower case.
MARKS = (
    *("sk-", "sg.", "npm_", "ya29.", "rk_live_", "rk_test_", "whsec_", "xapp-", "gocspx-", "hf_"),
    *("pypi-", "dop_v1_", "shpat_", "hooks.slack.com", "/api/webhooks/", "accountkey"),
)
SHORTEST_SECRET = 7
LONG_SECRET = 20


def has_hidden_shape(text: str) -> bool:
    """Whether a text holds a key of a service that payload rules do not know."""
    return _KEYS.search(text) is not None


def looks_secret(value: object) -> bool:
    """Whether a value under a name such as `auth` is the secret itself, not a word about it.

    >>> [looks_secret(text) for text in ("hunter2", "s3cr3t!x", "oauth2", "sha-256", "basic plan")]
    [True, True, False, False, False]
    """
    if not isinstance(value, str) or len(value) < SHORTEST_SECRET or _ORDINARY.fullmatch(value):
        return False
    if not _LETTER.search(value) or _SPACE.search(value):
        return False
    if _DIGIT.search(value) or _SYMBOL.search(value):
        return True
    return len(value) >= LONG_SECRET and value.lower() != value != value.upper()


# Anchored by what stands before them, so that a run of characters is read once. Keys of services
# have digits and capitals among the first characters; `sk-learn-compatible-estimator` has none.
_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Z])[\w-]{20,}"  # OpenAI, Anthropic
    r"|SG\.[\w-]{16,}\.[\w-]{16,}"  # SendGrid
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|hf_[A-Za-z]{30,}"
    r"|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}"  # Google
    r"|rk_(?:live|test)_\w{10,}|whsec_[\w+/]{20,}"  # Stripe
    r"|xapp-[\w-]{20,}|dop_v1_[0-9a-f]{40,}|shpat_[0-9a-fA-F]{32})"
    r"|hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{20,}"
    r"|/api/webhooks/\d{10,}/[\w-]{20,}"  # Discord
    r"|(?i:AccountKey)\s*=\s*[A-Za-z0-9+/]{20,}"  # Azure
)
# Words with separators and versions, algorithms, URLs, paths, mail addresses, ids.
_ORDINARY = re.compile(
    r"(?i:[a-z]+(?:[._ -](?:[a-z]+|v?\d{1,4}))*"
    r"|(?:(?:oauth|openid|saml|sha|hmac|aes|rsa|ecdsa|ed|md|tls|hs|rs|es|ps|v|with)[._-]?(?:\d{1,5}[._-]?)*+)+"
    r"|[a-z][a-z0-9+.-]*://[^\s@]*|\.{0,2}/\S*|[^@\s]+@[^@\s]+\.[a-z]+"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)
_LETTER = re.compile("[A-Za-z]")
_DIGIT = re.compile(r"\d")
_SYMBOL = re.compile(r"[!#$%^&*+=?~|<>@]")
_SPACE = re.compile(r"\s")
