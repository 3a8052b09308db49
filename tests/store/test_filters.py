"""Filters as SQL, held against the reference evaluator and against rows that tell the rules apart."""

from __future__ import annotations

import json
import random
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain import filters
from app.model import OWNER_FIELDS, And, Condition, FilterNode, Not, Operator, Or
from app.store import filters as compiled
from tests import filter_model

# The columns that filters know, from JSON instead of the table: a random set of rows then costs one statement.
_MEMORIES = """
SELECT m.n FROM jsonb_to_recordset($1::text::jsonb) AS m (
    n int, id uuid, user_id text, agent_id text, app_id text, run_id text, text text, categories text[], metadata jsonb,
    expiration_date date, state text, created_at timestamptz, updated_at timestamptz
) WHERE {condition} ORDER BY m.n
"""
_SCOPES = """
SELECT s.n FROM jsonb_to_recordset($1::text::jsonb) AS s (n int, user_id text, agent_id text, app_id text, run_id text)
WHERE {condition} ORDER BY s.n
"""
_NULLS = """
SELECT count(*) FROM jsonb_to_recordset($1::text::jsonb) AS m (
    n int, id uuid, user_id text, agent_id text, app_id text, run_id text, text text, categories text[], metadata jsonb,
    expiration_date date, state text, created_at timestamptz, updated_at timestamptz
) WHERE {condition} IS NULL
"""
_IDS = tuple(str(UUID(int=n)) for n in (1, 2, 3))
_BASE = {
    **dict.fromkeys(OWNER_FIELDS),
    "id": _IDS[0],
    "text": "likes tea",
    "categories": None,
    "metadata": None,
    "expiration_date": None,
    "state": "active",
    "created_at": "2021-06-18T12:00:00+00:00",
    "updated_at": "2021-06-18T12:00:00+00:00",
}


def parse(raw: Any) -> FilterNode:
    return filters.parse(raw, max_depth=10, max_conditions=200)


async def run(conn: Any, statement: str, fragment: compiled.Compiled, rows: list[dict[str, Any]]) -> list[int]:
    numbered = json.dumps([{**row, "n": n} for n, row in enumerate(rows)])
    found = await conn.fetch(statement.format(condition=fragment.sql), numbered, *fragment.args)
    return [row[0] for row in found]


async def selected(conn: Any, raw: Any, rows: list[dict[str, Any]]) -> list[int]:
    """Return the positions of the rows that filters select."""
    full = [{**_BASE, **row} for row in rows]
    return await run(conn, _MEMORIES, compiled.compile_memories(parse(raw), first=2), full)


# Random filters over random rows

_NAMES = ("a", "A", "b", "a_b", "%", "é")
_TEXTS = ("Paid the ÄRZTE invoice", "paid 100% to a_b", "straße ΟΔΟΣ", "οδος K", "' OR 1=1 --", "茶が好き")
_PARTS = ("ÄRZTE", "ärzte", "%", "_", "oδος", "ΟΔΟς", "k", "Straẞe", "' OR", "茶", "Invoice", "d 1")
_CATEGORIES = ("food", "Food & Drink", "ÄRZTE", "%")
_CATEGORY_PARTS = ("FOOD", "ärz", "%", "_", "&")
_KEYS = ("k", "a.b", "'; --", "ключ", "in")
_INSTANTS = (
    "2021-06-17T23:59:59.999999+00:00",
    "2021-06-18T00:00:00+00:00",
    "2021-06-18T12:00:00+00:00",
    "2021-06-18T23:59:59.999999+00:00",
    "2021-06-19T00:00:00+00:00",
)
_DAYS = ("2021-06-17", "2021-06-18", "2021-06-19")
# The driver takes the last and the first day for infinities, so the rows below, which do not pass through it, have none.
_MOMENTS = (
    *_INSTANTS,
    *_DAYS,
    "9999-12-31",
    "0001-01-01",
    "2021-06-18T14:00:00+02:00",
    "2021-06-18 12:00",
    1624017600,
    1624017600.5,
)
_VALUES = (
    "3",
    "x",
    "xy",
    "",
    3,
    3.0,
    1,
    0,
    1e23,
    True,
    False,
    None,
    ["x", 3],
    [True],
    [["x"]],
    {"a": 1},
    {"a": True},
    {},
)
_SCALARS = ("3", "x", "y", 3, 3.0, 1, True, False)

pick = st.sampled_from
names, moments, values = pick(_NAMES), pick(_MOMENTS), pick(_VALUES)


def make_rows(seed: int) -> list[dict[str, Any]]:
    """Return 40 memories of random fields. A seed is quicker to draw than the rows, and says the same."""
    chance = random.Random(seed)
    return [
        {
            **{owner: chance.choice((None, *_NAMES)) for owner in OWNER_FIELDS},
            "id": chance.choice(_IDS),
            "text": chance.choice(_TEXTS),
            "categories": chance.choice((None, [], [chance.choice(_CATEGORIES)], chance.sample(_CATEGORIES, 2))),
            "metadata": chance.choice((None, {}, {key: chance.choice(_VALUES) for key in chance.sample(_KEYS, 3)})),
            "expiration_date": chance.choice((None, *_DAYS)),
            "state": chance.choice(("active", "superseded", "merged")),
            "created_at": chance.choice(_INSTANTS),
            "updated_at": chance.choice(_INSTANTS),
        }
        for _ in range(40)
    ]


rows = st.integers(0, 10_000).map(make_rows)


def some(of: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, min_size=1, max_size=3)


def operators(**choices: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects of one or two operators."""
    single = [st.fixed_dictionaries({name: operand}) for name, operand in choices.items()]
    return st.one_of(single) | st.tuples(st.one_of(single), st.one_of(single)).map(lambda two: two[0] | two[1])


def entry(key: st.SearchStrategy[str], value: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(key, value).map(lambda pair: {pair[0]: pair[1]})


exists = st.booleans()
owners = entry(
    pick((*OWNER_FIELDS, "userId", "runId")),
    names
    | st.just("*")
    | names.map(lambda name: f" {name}\t")
    | operators(eq=names, ne=names, **{"in": some(names), "nin": some(names)}, exists=exists),
)
dates = entry(
    pick(("created_at", "updated_at", "timestamp", "expiration_date")),
    moments
    | st.just("*")
    | operators(
        gt=moments, gte=moments, lt=moments, lte=moments, ne=moments, exists=exists,
        **{"in": some(moments), "nin": some(moments)},
    ),
)  # fmt: skip
categories = entry(
    st.just("categories"),
    pick((*_CATEGORIES, "*"))
    | some(pick(_CATEGORIES))
    | operators(
        **{"in": some(pick(_CATEGORIES)), "nin": some(pick(_CATEGORIES))},
        contains=pick(_CATEGORY_PARTS), exists=exists,
    ),
)  # fmt: skip
metadata_value = (
    values.filter(lambda value: value != {"in": 1})
    | st.just("*")
    | operators(eq=values, ne=values, contains=pick(_SCALARS), exists=exists)
)
metadata = entry(st.just("metadata"), st.dictionaries(pick(_KEYS), metadata_value, min_size=1, max_size=2)) | entry(
    pick(("metadata.k", "metadata.ключ")), metadata_value
)
texts = (
    entry(st.just("keywords"), operators(contains=pick(_PARTS), icontains=pick(_PARTS)))
    | entry(
        st.just("text"),
        pick(_TEXTS)
        | operators(eq=pick(_TEXTS), ne=pick(_TEXTS), icontains=pick(_PARTS), **{"in": some(pick(_TEXTS))}),
    )
    | entry(st.just("keywords_search"), pick(("paid INVOICE", "ÄRZTE", "% a_B", "no")))
)
ids = entry(st.just("memory_ids"), some(pick(_IDS)) | operators(**{"in": some(pick(_IDS)), "nin": some(pick(_IDS))}))
leaves = owners | dates | categories | metadata | texts | ids


def trees(of: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    def joined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        return (
            entry(pick(("AND", "OR", "NOT")), some(inner))
            | entry(st.just("NOT"), inner)
            | st.tuples(inner, inner).map(lambda two: two[0] | two[1])
        )

    return st.recursive(of, joined, max_leaves=8)


def depth(raw: Any) -> int:
    if isinstance(raw, list):
        return max(map(depth, raw), default=0)
    if isinstance(raw, dict):
        return max((key in ("AND", "OR", "NOT")) + depth(value) for key, value in raw.items()) if raw else 0
    return 0


shallow = trees(leaves).filter(lambda raw: depth(raw) <= 10)
many = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@many
@given(raw=shallow, rows=rows)
async def test_sql_selects_what_the_reference_selects(conn: Any, raw: Any, rows: list[dict[str, Any]]) -> None:
    expected = [n for n, row in enumerate(rows) if filter_model.matches(raw, row)]
    assert await selected(conn, raw, rows) == expected


def single_conditions() -> list[dict[str, Any]]:
    """Return every field with every operator and every value of the pools above."""
    made: list[dict[str, Any]] = []
    for field in ("created_at", "updated_at", "timestamp", "expiration_date"):
        made += [{field: moment} for moment in _MOMENTS]
        made += [{field: {op: moment}} for op in ("gt", "gte", "lt", "lte", "ne") for moment in _MOMENTS]
        made += [{field: {op: [moment, _DAYS[0]]}} for op in ("in", "nin") for moment in _MOMENTS]
    for field in (*OWNER_FIELDS, "agentId"):
        made += [{field: {op: name}} for op in ("eq", "ne") for name in _NAMES]
        made += [{field: {op: [name, "a"]}} for op in ("in", "nin") for name in _NAMES]
        made += [{field: "*"}, {field: {"exists": True}}, {field: {"exists": False}}]
    for key in _KEYS:
        made += [{"metadata": {key: {op: value}}} for op in ("eq", "ne") for value in _VALUES]
        made += [{"metadata": {key: {"contains": value}}} for value in _SCALARS]
        made += [{"metadata": {key: "*"}}, {"metadata": {key: {"exists": False}}}]
    made += [
        {field: {op: part}} for field in ("keywords", "text") for op in ("contains", "icontains") for part in _PARTS
    ]
    made += [{"text": {op: text}} for op in ("eq", "ne") for text in _TEXTS]
    made += [{"categories": {op: [name]}} for op in ("in", "nin") for name in _CATEGORIES]
    made += [{"categories": {"contains": part}} for part in _CATEGORY_PARTS]
    return made


async def test_every_single_condition_selects_what_the_reference_selects(conn: Any) -> None:
    rows = make_rows(7)
    for raw in single_conditions():
        expected = [n for n, row in enumerate(rows) if filter_model.matches(raw, row)]
        assert await selected(conn, raw, rows) == expected, raw


@many
@given(raw=shallow, rows=rows)
async def test_no_fragment_is_null(conn: Any, raw: Any, rows: list[dict[str, Any]]) -> None:
    assert await run(conn, _NULLS, compiled.compile_memories(parse(raw), first=2), rows) == [0]


@many
@given(raw=shallow, rows=rows)
async def test_the_scope_of_every_match_is_selected(conn: Any, raw: Any, rows: list[dict[str, Any]]) -> None:
    fragment = compiled.compile_scopes(filters.null_scoped(parse(raw)), first=2)
    scopes = await run(conn, _SCOPES, fragment, rows)
    found = await run(conn, _MEMORIES, compiled.compile_memories(filters.null_scoped(parse(raw)), first=2), rows)
    assert set(found) <= set(scopes)


@many
@given(raw=trees(owners).filter(lambda raw: depth(raw) <= 10), rows=rows)
async def test_scopes_are_exact_where_only_owners_are_named(conn: Any, raw: Any, rows: list[dict[str, Any]]) -> None:
    expected = [n for n, row in enumerate(rows) if filter_model.matches(raw, row)]
    assert await run(conn, _SCOPES, compiled.compile_scopes(parse(raw), first=2), rows) == expected


@many
@given(
    key=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    value=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    around=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
)
async def test_any_text_is_found_as_plain_data(conn: Any, key: str, value: str, around: str) -> None:
    row = {"text": around + value + around, "metadata": {key: value}, "categories": [value]}
    for raw in (
        {"keywords": {"contains": value}},
        {"keywords": {"icontains": value.upper() if len(value.upper()) == len(value) else value}},
        {"text": {"eq": around + value + around}},
        {"metadata": {key: {"eq": value}}},
        {"metadata": {key: {"contains": value}}},
        {"categories": {"contains": value}},
        {"categories": {"in": [value]}},
    ):
        expected = [0] if filter_model.matches(raw, {**_BASE, **row}) else []
        assert await selected(conn, raw, [row]) == expected, raw


# Rules, one by one


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"NOT": {"metadata": {"k": "x"}}}, [1, 2]),
        ({"metadata": {"k": {"ne": "x"}}}, [1, 2]),
        ({"metadata": {"k": "*"}}, [0, 1]),
        ({"metadata": {"k": None}}, [2]),
        ({"NOT": {"OR": [{"metadata": {"k": "x"}}, {"metadata": {"k": "y"}}]}}, [2]),
        ({"NOT": {"AND": [{"metadata": {"k": "x"}}, {"metadata": {"k": "y"}}]}}, [0, 1, 2]),
        ({"NOT": [{"metadata": {"k": "x"}}, {"metadata": {"k": "y"}}]}, [0, 1, 2]),
    ],
)
async def test_negation_takes_absent_metadata_along(conn: Any, raw: Any, expected: list[int]) -> None:
    rows = [{"metadata": {"k": "x"}}, {"metadata": {"k": "y"}}, {"metadata": None}]
    assert await selected(conn, raw, rows) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(3, [0, 3]), (3.0, [0, 3]), ("3", [1]), (True, [2]), ({"b": [1], "a": 3}, [4]), ({"a": 3}, []), (1, [])],
)
async def test_metadata_compares_whole_values_with_their_type(conn: Any, wanted: Any, expected: list[int]) -> None:
    stored = [3, "3", True, 3.0, {"a": 3, "b": [1]}]
    assert (
        await selected(conn, {"metadata": {"n": wanted}}, [{"metadata": {"n": value}} for value in stored]) == expected
    )


@pytest.mark.parametrize(
    ("operator", "part", "expected"),
    [
        ("contains", "invoice", [0]),
        ("contains", "Invoice", []),
        ("icontains", "INVOICE", [0]),
        ("icontains", "ärzte", [0]),
        ("icontains", "ΟΔΌΣ", [1]),
        ("icontains", "%", [2]),
        ("icontains", "_", []),
    ],
)
async def test_keywords_fold_case_only_when_asked(conn: Any, operator: str, part: str, expected: list[int]) -> None:
    rows = [{"text": "Paid the ÄRZTE invoice"}, {"text": "στην οδός"}, {"text": "100%"}]
    assert await selected(conn, {"keywords": {operator: part}}, rows) == expected


async def test_case_is_folded_without_the_help_of_a_locale(conn: Any) -> None:
    fragment = compiled.compile_memories(parse({"keywords": {"icontains": "ärzte"}}), first=1)
    sql = fragment.sql.replace("m.text", "('ÄRZTE' COLLATE \"C\")")
    assert await conn.fetchval("SELECT lower('Ä' COLLATE \"C\")") == "Ä"
    assert await conn.fetchval(f"SELECT {sql}", *fragment.args) is True


_ON = ("2021-06-15T05:01:37Z", "2021-06-18T00:00:00Z", "2021-06-18T23:59:59.999999Z", "2021-06-25T12:00:00Z")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"gte": "2021-06-18", "lte": "2021-06-25"}, [1, 2, 3]),
        ({"gt": "2021-06-18"}, [3]),
        ({"lt": "2021-06-18"}, [0]),
        ({"lte": "2021-06-18"}, [0, 1, 2]),
        ("2021-06-18", [1, 2]),
        ({"in": ["2021-06-18", "2021-06-15T05:01:37Z"]}, [0, 1, 2]),
        ({"ne": "2021-06-18"}, [0, 3]),
        ({"nin": ["2021-06-18"]}, [0, 3]),
        ("2021-06-18T00:00:00Z", [1]),
        ("2021-06-18T02:00:00+02:00", [1]),
        ({"gte": 1624060799.5}, [2, 3]),
        ({"lte": "9999-12-31"}, [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("field", ["created_at", "timestamp"])
async def test_a_date_means_its_whole_day(conn: Any, field: str, condition: Any, expected: list[int]) -> None:
    assert await selected(conn, {field: condition}, [{"created_at": instant} for instant in _ON]) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"in": ["food"]}, [0]),
        ("food", [0]),
        (["food", "Sports"], [0, 1]),
        ({"contains": "SPORT"}, [1]),
        ({"nin": ["food"]}, [1, 2, 3]),
        ({"exists": False}, [3]),
        ("*", [0, 1, 2]),
    ],
)
async def test_categories_may_be_null_or_empty(conn: Any, condition: Any, expected: list[int]) -> None:
    rows = [{"categories": ["food", "travel"]}, {"categories": ["Sports"]}, {"categories": []}, {"categories": None}]
    assert await selected(conn, {"categories": condition}, rows) == expected


_SCOPING = [
    {"user_id": "alice"},
    {"user_id": "alice", "run_id": "s1"},
    {"user_id": "alice", "agent_id": "bot"},
    {"agent_id": "bot"},
    {"user_id": "bob"},
    {"user_id": "ALICE"},
    {"user_id": "alice", "agent_id": "bot", "app_id": "web", "run_id": "s1"},
]


@pytest.mark.parametrize(
    ("raw", "scoped", "unscoped"),
    [
        ({"user_id": "alice"}, [0], [0, 1, 2, 6]),
        ({"OR": [{"user_id": "alice"}]}, [0, 1, 2, 6], [0, 1, 2, 6]),
        ({"AND": [{"user_id": "alice"}, {"agent_id": "bot"}]}, [2], [2, 6]),
        ({"OR": [{"user_id": "alice"}, {"agent_id": "bot"}]}, [0, 1, 2, 3, 6], [0, 1, 2, 3, 6]),
        ({"AND": [{"user_id": "*"}]}, [0, 4, 5], [0, 1, 2, 4, 5, 6]),
        ({"OR": [{"user_id": "*"}]}, [0, 1, 2, 4, 5, 6], [0, 1, 2, 4, 5, 6]),
        ({"AND": [{"user_id": "alice"}, {"run_id": "s1"}]}, [1], [1, 6]),
        ({"user_id": "alice", "run_id": "*"}, [1], [1, 6]),
        ({"AND": [{"OR": [{"user_id": "alice"}, {"user_id": "bob"}]}]}, [0, 4], [0, 1, 2, 4, 6]),
        ({"AND": [{"user_id": "alice"}, {"NOT": {"run_id": "s1"}}]}, [0], [0, 2]),
        ({"NOT": {"user_id": "alice"}}, [3, 4, 5], [3, 4, 5]),
        ({"user_id": {"nin": ["alice"]}}, [4, 5], [3, 4, 5]),
        (dict.fromkeys(OWNER_FIELDS, "*"), [6], [6]),
        ({"OR": [{owner: "*"} for owner in OWNER_FIELDS]}, [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]),
    ],
)
async def test_owners_that_are_not_named_must_be_null(
    conn: Any, raw: Any, scoped: list[int], unscoped: list[int]
) -> None:
    full = [{**_BASE, **row} for row in _SCOPING]
    node = parse(raw)
    for tree, expected in ((filters.null_scoped(node), scoped), (node, unscoped)):
        assert await run(conn, _MEMORIES, compiled.compile_memories(tree, first=2), full) == expected
        assert await run(conn, _SCOPES, compiled.compile_scopes(tree, first=2), full) == expected


async def narrowed(conn: Any, rows: list[dict[str, Any]], **options: Any) -> list[int]:
    node = filters.narrow(And(()), today=date(2024, 7, 31), **options)
    return await run(conn, _MEMORIES, compiled.compile_memories(node, first=2), [{**_BASE, **row} for row in rows])


async def test_a_memory_is_visible_through_its_last_day(conn: Any) -> None:
    rows = [{"expiration_date": day} for day in (None, "2024-07-30", "2024-07-31", "2024-08-01")]
    assert await narrowed(conn, rows) == [0, 2, 3]
    assert await narrowed(conn, rows, show_expired=True) == [0, 1, 2, 3]


async def test_merged_memories_are_hidden_and_superseded_ones_are_not(conn: Any) -> None:
    rows = [{"state": state} for state in ("active", "superseded", "merged")]
    assert await narrowed(conn, rows) == [0, 1]
    assert await narrowed(conn, rows, latest_only=True) == [0]
    assert await narrowed(conn, rows, include_merged=True) == [0, 1, 2]
    assert await narrowed(conn, rows, include_merged=True, latest_only=True) == [0]


async def test_each_shortcut_narrows(conn: Any) -> None:
    rows = [
        {"categories": ["food"], "metadata": {"k": 1}, "text": "Green TEA", "created_at": "2024-01-31T23:59:59Z"},
        {"categories": ["tech"], "metadata": {"k": 2}, "text": "coffee", "created_at": "2024-02-01T00:00:00Z"},
    ]
    assert await narrowed(conn, rows, categories=["food", "x"]) == [0]
    assert await narrowed(conn, rows, metadata={"k": 2}) == [1]
    assert await narrowed(conn, rows, keywords=" green tea ") == [0]
    assert await narrowed(conn, rows, end_date="2024-01-31") == [0]
    assert await narrowed(conn, rows, start_date="2024-02-01") == [1]
    assert await narrowed(conn, rows, keywords=" ", metadata={}) == [0, 1]


# The real tables

_HOSTILE = "x'); DELETE FROM memories; --"


async def test_fragments_fit_the_real_tables(conn: Any) -> None:
    raw = {
        "AND": [
            {"user_id": _HOSTILE, "run_id": {"in": ["a"], "ne": "b"}},
            {"NOT": {"metadata": {_HOSTILE: _HOSTILE, "k": {"contains": _HOSTILE}}}},
            {"OR": [{"categories": {"in": [_HOSTILE], "contains": _HOSTILE}}, {"keywords": {"icontains": _HOSTILE}}]},
            {"created_at": {"gte": "2021-06-18", "in": ["2021-06-18T10:00:00Z"]}, "expiration_date": {"exists": False}},
            {"memory_ids": [str(uuid4())], f"metadata.{_HOSTILE.replace('.', '')}": 1},
        ]
    }
    node = filters.narrow(filters.null_scoped(parse(raw)), today=date(2024, 7, 31))
    memories = compiled.compile_memories(node, first=2)
    scopes = compiled.compile_scopes(node, first=2)
    assert _HOSTILE not in memories.sql + scopes.sql
    select = "SELECT count(*) FROM {table} WHERE {alias}.project_id = $1 AND {condition}"
    for table, alias, fragment in (("memories m", "m", memories), ("scopes s", "s", scopes)):
        statement = select.format(table=table, alias=alias, condition=fragment.sql)
        assert await conn.fetchval(statement, 1, *fragment.args) == 0


async def test_an_owner_is_looked_up_by_an_index_of_scopes(conn: Any) -> None:
    await conn.execute("SET LOCAL enable_seqscan = off")
    fragment = compiled.compile_scopes(parse({"run_id": "s1", "metadata": {"k": 1}}), first=2)
    plan = await conn.fetch(
        f"EXPLAIN SELECT s.id FROM scopes s WHERE s.project_id = $1 AND {fragment.sql}", 1, *fragment.args
    )
    assert any("scopes_run" in row[0] for row in plan)


def test_what_is_no_owner_never_decides_about_a_scope() -> None:
    food = Condition("categories", Operator.IN, ("food",))
    alice = Condition("user_id", Operator.EQ, "alice")
    for node in (food, Not(food), Or((alice, food)), Or((alice, Not(food))), Not(And((alice, food)))):
        assert compiled.compile_scopes(node, first=1) == compiled.Compiled("(TRUE)", [])
    only_alice = compiled.compile_scopes(And((alice, Not(food))), first=1)
    assert only_alice.args == ["alice"]
    assert compiled.compile_scopes(Not(Or((alice, food))), first=1).args == ["alice"]


def test_an_operator_that_a_field_does_not_know_is_refused() -> None:
    for field in ("text", "created_at", "categories", "metadata", "bogus"):
        with pytest.raises(compiled.InvalidRequest, match=field):
            compiled.compile_memories(
                Condition(field, Operator.GT if field != "created_at" else Operator.CONTAINS), first=1
            )


async def test_empty_groups_have_their_neutral_truth(conn: Any) -> None:
    assert compiled.compile_memories(And(()), first=1).sql == "(TRUE)"
    assert compiled.compile_memories(Or(()), first=1).sql == "(FALSE)"
