from typing import Any


def tenant_of(request: Any) -> int | None:
    """The tenants of the tests are numbers in the e-mail address: ada@7.example."""
    _, _, host = getattr(request.user, "email", "").partition("@")
    number = host.partition(".")[0]
    return int(number) if number.isdigit() else None
