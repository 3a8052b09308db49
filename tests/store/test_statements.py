"""Every SQL constant of the store is valid against the migrated schema."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import app.store
from app.store import memory_rows

#: Statements that can be prepared; the rest of the constants are fragments and definitions.
_STATEMENT = re.compile(r"\s*(--[^\n]*\n\s*)*(WITH|SELECT|INSERT|UPDATE|DELETE)\b")


def constants():
    for info in pkgutil.iter_modules(app.store.__path__):
        module = importlib.import_module(f"app.store.{info.name}")
        for name, value in vars(module).items():
            if re.fullmatch(r"_[A-Z][A-Z0-9_]*", name) and isinstance(value, str) and _STATEMENT.match(value):
                yield pytest.param(value, id=f"{info.name}.{name}")


@pytest.mark.parametrize("statement", list(constants()))
async def test_every_statement_prepares(conn, statement):
    await conn.prepare(statement)


@pytest.mark.parametrize("statement", list(constants()))
def test_every_statement_names_its_columns(statement):
    """One that is prepared must outlive the columns that a migration adds while it is in use."""
    assert not re.search(
        r"RETURNING (\w+\.)?\*\s*\Z|^SELECT (DISTINCT )?([^()]*, *)?(\w+\.)?\*", statement, re.MULTILINE
    )


def test_there_are_statements():
    assert len(list(constants())) > 50
    assert "m.text" in memory_rows.COLUMNS
