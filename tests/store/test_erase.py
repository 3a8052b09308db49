"""What an erase finds, deletes and counts."""

from __future__ import annotations

import pytest

from app.store import erase, erase_owner, traces

_TENANTS = """
SELECT c.relname FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'project_id' AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
"""


@pytest.mark.parametrize("statement", [pytest.param(sql, id=what) for what, sql in erase_owner.statements().items()])
async def test_every_statement_prepares(conn, statement):
    await conn.prepare(statement)


async def test_every_table_of_tenants_goes_with_its_project(conn):
    tables = {row["relname"] for row in await conn.fetch(_TENANTS)}
    assert tables - {"audit_log"} == {*erase.TABLES, *erase.LOOSE}  # what was done stays, without what it was done to


async def test_every_table_of_tenants_says_what_it_keeps_of_an_owner(conn):
    tables = {row["relname"] for row in await conn.fetch(_TENANTS)}
    assert tables <= set(traces.OF_OWNER) | set(traces.NOT_OF_OWNERS)
    assert set(traces.OF_OWNER) <= tables
    assert not set(traces.OF_OWNER) & set(traces.NOT_OF_OWNERS)
