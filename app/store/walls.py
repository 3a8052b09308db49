"""The second wall between tenants: whose work a connection does, and what row-level security lets it see.

The first wall is that every statement names its project. The second one holds when a statement forgets it: the
connections of the service act as roles that own no table (migrations/0008_walls.sql), and PostgreSQL shows them the
rows of one project only.
"""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from app import errors

APP = "memoryd_app"  #: does the work of one project
SYSTEM = "memoryd_system"  #: does the work over all projects, and keeps the directory

_RAISE = "SELECT memoryd_raise_walls()"


async def raise_all(conn: asyncpg.Connection) -> str | None:
    """Put every tenant's table behind row-level security; return why that is not possible, or None. Safe to repeat."""
    reason: str | None = await conn.fetchval(_RAISE)
    return reason


@dataclass(frozen=True, slots=True)
class Standing:
    """What the database says about the wall."""

    user: str  # whom the service connects as
    migrated: bool  # the schema knows the wall
    raised: bool  # the tables stand behind it
    open_tables: tuple[str, ...]  # tables of tenants that do not, although others do
    usable: bool  # the user may act as both roles

    @property
    def refusal(self) -> str | None:
        """Why the wall does not stand and what to do about it, in one line; None: it stands."""
        if self.raised and not self.open_tables:
            return None
        if not self.migrated:
            return "row-level security is off: run `memoryd migrate`"
        if self.open_tables:
            return f"row-level security is off for {', '.join(self.open_tables)}: run `memoryd migrate` as their owner"
        return (
            f"row-level security is off, because {self.user} may neither make its roles nor act as them; "
            f"projects are kept apart by the statements alone. Let an administrator run CREATE ROLE {APP}; CREATE ROLE {SYSTEM}; "
            f"GRANT {APP}, {SYSTEM} TO {self.user}; then run `memoryd migrate`"
        )


_STANDING = """
WITH tenants AS (
    SELECT c.relname AS name, c.relrowsecurity AND c.relforcerowsecurity AS guarded
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'project_id' AND NOT a.attisdropped
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
      AND c.relowner = (SELECT o.relowner FROM pg_class o WHERE o.oid = to_regclass('schema_migrations'))
)
SELECT session_user::text AS user, to_regproc('memoryd_raise_walls') IS NOT NULL AS migrated,
       coalesce((SELECT bool_or(guarded) FROM tenants), false) AS raised,
       ARRAY(SELECT name::text FROM tenants WHERE NOT guarded ORDER BY name) AS open_tables,
       coalesce(pg_has_role(session_user, to_regrole($1)::oid, 'SET')
                AND pg_has_role(session_user, to_regrole($2)::oid, 'SET'), false) AS usable
"""


async def standing(conn: asyncpg.Connection) -> Standing:
    """Return how the wall stands, for the user that `conn` connected as. A database without a schema has none."""
    row = await conn.fetchrow(_STANDING, APP, SYSTEM)
    return Standing(
        user=row["user"],
        migrated=row["migrated"],
        raised=row["raised"],
        open_tables=tuple(row["open_tables"]) if row["raised"] else (),
        usable=row["usable"],
    )


def require_usable(found: Standing) -> None:
    """Refuse a user to whom a standing wall would show nothing. Raises: SetupError."""
    if found.raised and not found.usable:
        raise errors.SetupError(
            f"The database user {found.user} may not act as memoryd's roles: "
            f"let an administrator run GRANT {APP}, {SYSTEM} TO {found.user}."
        )


_ACT = "SELECT set_config('role', $1, $3), set_config('memoryd.project', $2, $3)"


async def act(conn: asyncpg.Connection, project_id: int | None, *, local: bool) -> None:
    """Let the connection do the work of one project, or with None the work over all of them. One round trip.

    `local`: until the end of the transaction that is open; else until it is told otherwise.
    """
    role, project = (SYSTEM, "") if project_id is None else (APP, str(project_id))
    await conn.fetchrow(_ACT, role, project, local)
