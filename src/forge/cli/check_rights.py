"""Whether the database gives anyone more rights over Forge's objects than they need."""

from itertools import groupby
from typing import Any

from forge.cli.finding import Finding, warning
from forge.store import doctor
from forge.store.database import Database
from forge.store.rights import granted_rights, held, is_granted
from forge.store.roles import ROLES

# Objects that one finding names; a role with rights on all tables is one mistake, not ten.
MOST_NAMED = 4


async def check_rights(database: Database, *, is_embedded: bool) -> list[Finding]:
    """Warn about owners, creators and roles that could do more than Forge needs.

    The embedded server belongs to the person who runs it: its one role is a superuser, and that
    gives nobody anything new.
    """
    findings = [] if is_embedded else await _owners(database)
    findings += await _creators(database)
    findings += await _powers(database)
    findings += await _excess(database)
    return findings


async def _owners(database: Database) -> list[Finding]:
    advice = (
        "let an ordinary role own them (docs/howto/deploy.md, Rights): functions that run as their "
        "owner have all of its rights"
    )
    return [
        warning("owner", f"Forge's tables or functions belong to superuser {row['name']}", advice)
        for row in await database.run(doctor.superuser_owners())
    ]


async def _creators(database: Database) -> list[Finding]:
    return [
        warning(
            "schema",
            f"{row['name']} may create objects in schema {row['schema']}, beside Forge's own",
            f"revoke create on schema {row['schema']} from {row['name']}",
        )
        for row in await database.run(doctor.schema_creators())
    ]


async def _powers(database: Database) -> list[Finding]:
    findings = []
    for row in await database.run(doctor.role_powers(list(ROLES))):
        role, owner = row["role"], row["owner"]
        if row["is_superuser"]:
            advice = f"alter role {role} nosuperuser"
            findings.append(warning("roles", f"{role} is a superuser", advice))
            continue
        if row["bypasses_row_security"]:
            advice = f"alter role {role} nobypassrls"
            findings.append(warning("roles", f"{role} bypasses row security", advice))
        if owner is not None:
            what = f"{role} is a member of {owner}, which owns Forge's tables"
            findings.append(warning("roles", what, f"revoke {owner} from {role}"))
    return findings


async def _excess(database: Database) -> list[Finding]:
    granted = granted_rights()
    excess = [
        row
        for row in await database.run(doctor.rights_held(list(ROLES)))
        if not is_granted(held(row, row["role"]), granted)
    ]
    return [
        _too_much(role, through, list(found))
        for (role, through), found in groupby(excess, lambda row: (row["role"], row["through"]))
    ]


def _too_much(role: str, through: str | None, excess: list[Any]) -> Finding:
    objects = [
        (f"{kind} {name}", ", ".join(sorted({row["privilege"] for row in found})))
        for (kind, name), found in groupby(excess, lambda row: (row["kind"], row["object"]))
    ]
    named = "; ".join(f"{privileges} on {name}" for name, privileges in objects[:MOST_NAMED])
    named += "; …" * (len(objects) > MOST_NAMED)
    if through is not None:
        what = f"{role} has, as a member of {through}, more than it needs: {named}"
        return warning("roles", what, f"revoke {through} from {role}")
    what = f"{role} has more than `forge migrate --roles` grants: {named}"
    revoke = "; ".join(f"revoke all on {name} from {role}" for name, _ in objects[:MOST_NAMED])
    return warning("roles", what, f"{revoke}; then run `forge migrate --roles`")
