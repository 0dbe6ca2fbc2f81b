"""Checks of grants: roles with more or fewer rights on Forge's objects than they need."""

from itertools import groupby
from typing import Any

from forge.core.finding import Finding, warning
from forge.store import doctor
from forge.store.connection.database import Database
from forge.store.roles import ROLES, granted_rights, held, is_granted
from forge.store.statement import Rows

# Objects that one finding names: rights on all tables are one mistake, not ten.
MAX_OBJECTS_NAMED = 4


async def check_rights(database: Database, *, is_embedded: bool) -> list[Finding]:
    """Warn about owners, creators and roles with more rights than Forge needs, or with fewer.

    The only role of an embedded server is a superuser; that is expected.
    """
    findings = [] if is_embedded else await _owners(database)
    findings += await _creators(database)
    findings += await _powers(database)
    rows = await database.run(doctor.rights_held(list(ROLES)))
    return findings + _excess(rows) + _lacking(rows)


async def _owners(database: Database) -> list[Finding]:
    advice = (
        "make an ordinary role the owner (docs/howto/deploy.md, Rights): security definer "
        "functions run with all rights of their owner"
    )
    return [
        warning(
            "superuser_owner",
            f"Forge's tables or functions belong to superuser {row['name']}",
            advice,
            role=row["name"],
        )
        for row in await database.run(doctor.superuser_owners())
    ]


async def _creators(database: Database) -> list[Finding]:
    return [
        warning(
            "schema_creators",
            f"{row['name']} can create objects in schema {row['schema']}, next to Forge's",
            f"revoke create on schema {row['schema']} from {row['name']}",
            role=row["name"],
        )
        for row in await database.run(doctor.schema_creators())
    ]


async def _powers(database: Database) -> list[Finding]:
    findings = []
    for row in await database.run(doctor.role_powers(list(ROLES))):
        role, owner = row["role"], row["owner"]
        if row["is_superuser"]:
            advice = f"alter role {role} nosuperuser"
            findings.append(warning("excess_rights", f"{role} is a superuser", advice, role=role))
            continue
        if row["bypasses_row_security"]:
            advice = f"alter role {role} nobypassrls"
            what = f"{role} bypasses row security"
            findings.append(warning("excess_rights", what, advice, role=role))
        if owner is not None:
            what = f"{role} is a member of {owner}, which owns Forge's tables"
            advice = f"revoke {owner} from {role}"
            findings.append(warning("excess_rights", what, advice, role=role))
    return findings


def _excess(rows: Rows) -> list[Finding]:
    granted = granted_rights()
    excess = [row for row in rows if not is_granted(held(row, row["role"]), granted)]
    return [
        _excess_finding(role, through, list(found))
        for (role, through), found in groupby(excess, lambda row: (row["role"], row["through"]))
    ]


def _lacking(rows: Rows) -> list[Finding]:
    """Find the roles that were granted rights by an earlier version, and need more now."""
    had = {held(row, row["role"]) for row in rows}
    findings = []
    for role in sorted({row["role"] for row in rows} & set(ROLES)):
        lacking = [right for right in granted_rights() if right.role == role and right not in had]
        if not lacking:
            continue
        names = sorted({right.object for right in lacking})
        named = ", ".join(names[:MAX_OBJECTS_NAMED]) + ", …" * (len(names) > MAX_OBJECTS_NAMED)
        message = f"{role} lacks rights that this version needs, on {named}"
        advice = "run `forge migrate --roles` as the owner"
        findings.append(warning("lacking_rights", message, advice, role=role, objects=names))
    return findings


def _excess_finding(role: str, through: str | None, excess: list[Any]) -> Finding:
    objects = [
        (f"{kind} {name}", ", ".join(sorted({row["privilege"] for row in found})))
        for (kind, name), found in groupby(excess, lambda row: (row["kind"], row["object"]))
    ]
    named = "; ".join(f"{privileges} on {name}" for name, privileges in objects[:MAX_OBJECTS_NAMED])
    named += "; …" * (len(objects) > MAX_OBJECTS_NAMED)
    if through is not None:
        what = f"{role} has more rights than it needs, as a member of {through}: {named}"
        return warning("excess_rights", what, f"revoke {through} from {role}", role=role)
    what = f"{role} has more rights than `forge migrate --roles` grants: {named}"
    revoke = "; ".join(
        f"revoke all on {name} from {role}" for name, _ in objects[:MAX_OBJECTS_NAMED]
    )
    advice = f"{revoke}; then run `forge migrate --roles`"
    return warning("excess_rights", what, advice, role=role)
