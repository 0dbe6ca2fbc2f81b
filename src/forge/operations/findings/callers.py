"""Checks of row security: whether callers are signed and accepted, and the API's rights."""

from forge.core.errors import StatementRefused
from forge.core.finding import Finding, ok, problem, warning
from forge.store import doctor
from forge.store.connection.database import Database
from forge.store.connection.tenant import is_operator, standing
from forge.store.roles import API_ROLE


async def check_callers(database: Database) -> Finding:
    """Check whether row security applies to this login, and whether its callers are signed."""
    found = await database.run(standing())
    if not found["is_bound"]:
        return ok("callers", "row security does not apply to this role")
    if not found["is_signed"]:
        return warning(
            "unsigned_callers",
            "callers are not signed: row security catches forgotten filters, not injected SQL",
            "set [auth] secret and run `forge migrate --roles` as the owner",
        )
    try:
        await database.run(is_operator())
    except StatementRefused as error:
        advice = "run `forge migrate --roles` as the owner with the [auth] secret of this process"
        return problem("rejected_callers", f"the database rejects callers ({error})", advice)
    return ok("callers", "callers are signed, and accepted by the database")


async def check_api_rights(database: Database) -> Finding:
    """Check whether a server with this login has more rights than it needs."""
    found = await database.run(doctor.api_rights())
    if found["may_take_role"] or not found["may_move"]:
        role = API_ROLE if found["may_take_role"] else found["role"]
        what = f"its own statements run as {role}, mutations as {found['login']}"
        return ok("api_rights", what)
    return warning(
        "excess_api_rights",
        f"the API runs as {found['role']}, which has more rights on jobs than it needs",
        "run `forge migrate --roles` as the owner, and grant forge_api to this login, or set "
        "[server] database_url to a login that has it",
        role=found["role"],
    )
