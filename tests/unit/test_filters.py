"""The filter language as it is read: what each form means, and what is refused with which words."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from app.domain import filters
from app.errors import InvalidRequest
from app.model import OWNER_FIELDS, And, Condition, FilterNode, Not, Operator, Or

_ID = "7f3e1c9a-0000-4000-8000-000000000001"


def parse(raw: Any) -> FilterNode:
    return filters.parse(raw, max_depth=10, max_conditions=200)


def eq(field: str, value: Any, key: str | None = None) -> Condition:
    return Condition(field, Operator.EQ, value, key)


ALICE, BOT = eq("user_id", "alice"), eq("agent_id", "bot")


@pytest.mark.parametrize(
    ("raw", "node"),
    [
        ({"user_id": "alice"}, ALICE),
        ({"user_id": "alice", "agent_id": "bot"}, And((ALICE, BOT))),
        ({"AND": [{"user_id": "alice"}]}, And((ALICE,))),
        ({"OR": [{"user_id": "alice"}]}, Or((ALICE,))),
        ({"NOT": {"user_id": "alice"}}, Not(ALICE)),
        ({"NOT": [{"user_id": "alice"}]}, Not(ALICE)),
        ({"NOT": [{"user_id": "alice"}, {"agent_id": "bot"}]}, Not(And((ALICE, BOT)))),
        ({"NOT": {"user_id": "alice", "agent_id": "bot"}}, Not(And((ALICE, BOT)))),
        (
            {"AND": [{"user_id": "alice"}], "OR": [{"agent_id": "bot"}, {"user_id": "alice"}]},
            And((And((ALICE,)), Or((BOT, ALICE)))),
        ),
        ({"AND": [{"user_id": "alice", "agent_id": "bot"}, {"user_id": "alice"}]}, And((And((ALICE, BOT)), ALICE))),
        ({"OR": [{"AND": [{"user_id": "alice"}]}, {"NOT": {"agent_id": "bot"}}]}, Or((And((ALICE,)), Not(BOT)))),
    ],
)
def test_logical_operators_are_read_as_written(raw: Any, node: FilterNode) -> None:
    assert parse(raw) == node


@pytest.mark.parametrize(
    ("raw", "node"),
    [
        ("*", Condition("user_id", Operator.ANY)),
        ({"eq": "*"}, Condition("user_id", Operator.ANY)),
        ({"eq": "alice"}, ALICE),
        ("  alice\t", ALICE),
        ({"ne": "alice"}, Condition("user_id", Operator.NE, "alice")),
        ({"in": ["alice", " bob"]}, Condition("user_id", Operator.IN, ("alice", "bob"))),
        ({"nin": ["alice"]}, And((Not(Condition("user_id", Operator.IN, ("alice",))),))),
        ({"exists": False}, Condition("user_id", Operator.EXISTS, False)),
        ({"ne": "bob", "eq": "alice"}, And((Condition("user_id", Operator.NE, "bob"), ALICE))),
        ("7f3e1c9a:a/b.c@x+1 '; --", eq("user_id", "7f3e1c9a:a/b.c@x+1 '; --")),
    ],
)
def test_forms_of_an_owner(raw: Any, node: FilterNode) -> None:
    assert parse({"user_id": raw}) == node


@pytest.mark.parametrize("field", OWNER_FIELDS)
def test_owners_are_also_read_in_camel_case(field: str) -> None:
    kind = field.removesuffix("_id")
    assert parse({f"{kind}Id": "alice"}) == parse({field: "alice"})


_NOON = datetime(2024, 7, 31, 12, tzinfo=UTC)
_DAY = date(2024, 7, 31)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2024-07-31", _DAY),
        ("2024-07-31T12:00:00Z", _NOON),
        ("2024-07-31t12:00:00z", _NOON),
        ("2024-07-31T12:00:00", _NOON),
        ("2024-07-31 12:00", _NOON),
        ("2024-07-31T14:00:00+02:00", _NOON),
        ("2024-07-31T12:00:00.5Z", _NOON.replace(microsecond=500_000)),
        (1722427200, _NOON),
        (1722427200.5, _NOON.replace(microsecond=500_000)),
    ],
)
def test_forms_of_a_moment(written: Any, value: date) -> None:
    assert parse({"created_at": written}) == eq("created_at", value)
    assert parse({"timestamp": {"gte": written}}) == Condition("created_at", Operator.GTE, value)
    assert parse({"expiration_date": written}) == eq("expiration_date", _DAY)


@pytest.mark.parametrize(
    ("raw", "node"),
    [
        (
            {"created_at": {"gte": "2024-07-31", "lt": "2024-07-31T12:00Z"}},
            And((Condition("created_at", Operator.GTE, _DAY), Condition("created_at", Operator.LT, _NOON))),
        ),
        ({"updated_at": {"in": ["2024-07-31"]}}, Condition("updated_at", Operator.IN, (_DAY,))),
        ({"expiration_date": "*"}, Condition("expiration_date", Operator.ANY)),
        ({"categories": "food"}, Condition("categories", Operator.IN, ("food",))),
        ({"categories": ["food", "tech"]}, Condition("categories", Operator.IN, ("food", "tech"))),
        ({"categories": {"in": ["food"]}}, Condition("categories", Operator.IN, ("food",))),
        ({"categories": {"contains": "FOO"}}, Condition("categories", Operator.ICONTAINS, "FOO")),
        ({"memory_ids": [_ID]}, Condition("id", Operator.IN, (UUID(_ID),))),
        ({"memory_ids": _ID}, Condition("id", Operator.IN, (UUID(_ID),))),
        ({"memory_ids": {"nin": [_ID]}}, And((Not(Condition("id", Operator.IN, (UUID(_ID),))),))),
        ({"keywords": {"contains": "a%"}}, Condition("text", Operator.CONTAINS, "a%")),
        ({"keywords": {"icontains": "a"}}, Condition("text", Operator.ICONTAINS, "a")),
        ({"text": "a b"}, eq("text", "a b")),
        ({"text": {"contains": "a"}}, Condition("text", Operator.CONTAINS, "a")),
        (
            {"keywords_search": " green  tea "},
            And((Condition("text", Operator.ICONTAINS, "green"), Condition("text", Operator.ICONTAINS, "tea"))),
        ),
        ({"keywords_search": {"contains": "tea"}}, Condition("text", Operator.ICONTAINS, "tea")),
        ({"metadata": {"k": "v"}}, eq("metadata", "v", "k")),
        ({"metadata": {"k": "v", "n": 3}}, And((eq("metadata", "v", "k"), eq("metadata", 3, "n")))),
        ({"metadata": {"k": None}}, eq("metadata", None, "k")),
        ({"metadata": {"k": {"a": {"b": [1]}}}}, eq("metadata", {"a": {"b": [1]}}, "k")),
        ({"metadata": {"k": {}}}, eq("metadata", {}, "k")),
        ({"metadata": {"k": {"eq": {"gt": 1}}}}, eq("metadata", {"gt": 1}, "k")),
        ({"metadata": {"k": {"eq": "*"}}}, eq("metadata", "*", "k")),
        ({"metadata": {"k": "*"}}, Condition("metadata", Operator.ANY, None, "k")),
        ({"metadata": {"k": {"ne": 1}}}, Condition("metadata", Operator.NE, 1, "k")),
        ({"metadata": {"k": {"contains": "a"}}}, Condition("metadata", Operator.CONTAINS, "a", "k")),
        ({"metadata": {"k": {"exists": True}}}, Condition("metadata", Operator.EXISTS, True, "k")),
        ({"metadata": {"a.b": 1}}, eq("metadata", 1, "a.b")),
        ({"metadata.k": {"ne": 1}}, Condition("metadata", Operator.NE, 1, "k")),
        ({"metadata": {"'; --": 1}}, eq("metadata", 1, "'; --")),
    ],
)
def test_forms_of_the_other_fields(raw: Any, node: FilterNode) -> None:
    assert parse(raw) == node


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (None, "an entity id is required"),
        ({}, "an entity id is required"),
        ([], "filters must be an object"),
        ("user_id", "filters must be an object"),
        ({"AND": []}, '"AND" must be a list of objects'),
        ({"OR": []}, '"OR" must be a list of objects'),
        ({"NOT": []}, '"NOT" must be an object or a list'),
        ({"NOT": {}}, '"NOT" must hold objects'),
        ({"AND": {"user_id": "a"}}, '"AND" must be a list of objects'),
        ({"AND": ["a"]}, '"AND" must hold objects'),
        ({"OR": [{"user_id": "a"}, {}]}, '"OR" must hold objects'),
        ({"AND": [{"user_id": "a", "bogus": 1}]}, '"bogus"'),
        ({"and": [{"user_id": "a"}]}, '"and"'),
        ({"feedback": "POSITIVE"}, '"feedback"'),
        ({"user_id": ""}, '"user_id" must not be empty or blank'),
        ({"user_id": " \t"}, '"user_id" must not be empty or blank'),
        ({"run_id": {"in": ["a", ""]}}, '"run_id" must not be empty or blank'),
        ({"user_id": {"in": []}}, '"user_id" must not be an empty list'),
        ({"user_id": {"in": "a"}}, '"user_id" must be a list, not a string'),
        ({"user_id": {"in": ["a"] * 1001}}, '"user_id" must not list more than 1000'),
        ({"user_id": {}}, '"user_id" must not be an empty object'),
        ({"user_id": ["a"]}, r'"user_id" must not be a bare list; write {"in": \[\.\.\.\]}'),
        ({"user_id": 7}, '"user_id" must be a string, not a number'),
        ({"user_id": True}, '"user_id" must be a string, not a boolean'),
        ({"user_id": None}, '"user_id" must be a string, not null'),
        ({"userId": 7}, '"userId" must be a string'),
        ({"user_id": "a\0b"}, r'"user_id" must not contain U\+0000'),
        ({"user_id": "a\bb"}, '"user_id" must not contain control characters'),
        ({"user_id": "a\nb"}, '"user_id" must not contain control characters'),
        ({"user_id": "\ud800"}, '"user_id" contains half of a surrogate pair'),
        ({"user_id": "a" * 256}, '"user_id" must not be longer than 255'),
        ({"user_id": {"in": ["*"]}}, '"user_id" takes the wildcard'),
        ({"user_id": {"ne": "*"}}, '"user_id" takes the wildcard'),
        ({"user_id": {"exists": 1}}, '"user_id" must be true or false, not a number'),
        ({"user_id": {"gt": "a"}}, '"user_id" does not take the operator "gt"; it takes eq, ne, in, nin, exists'),
        ({"user_id": {"contains": "a"}}, '"user_id" does not take the operator "contains"'),
        ({"user_id": {"!=": "a"}}, '"user_id" does not take the operator "!="'),
        ({"created_at": {">=": "2024-01-01"}}, '"created_at" does not take the operator ">="'),
        ({"created_at": {"eq": "2024-01-01"}}, '"created_at" does not take the operator "eq".*without an operator'),
        ({"created_at": ["2024-01-01"]}, '"created_at" must not be a bare list'),
        ({"categories": {"eq": "food"}}, '"categories" does not take the operator "eq".*{"in": '),
        ({"categories": {"ne": "food"}}, '"categories" does not take the operator "ne"'),
        ({"categories": [1]}, '"categories" must be a string, not a number'),
        ({"categories": {"contains": ""}}, '"categories" must not be empty'),
        ({"keywords": "tea"}, '"keywords" needs an operator: contains, icontains'),
        ({"keywords": "*"}, '"keywords" needs an operator'),
        ({"keywords": {"contains": ""}}, '"keywords" must not be empty'),
        ({"keywords": {"eq": "tea"}}, '"keywords" does not take the operator "eq"'),
        ({"keywords_search": " "}, '"keywords_search" must not be empty or blank'),
        ({"keywords_search": {"in": ["a"]}}, '"keywords_search" takes a text, or the operator contains'),
        ({"keywords_search": 1}, '"keywords_search" must be a string'),
        ({"memory_ids": ["no id"]}, '"memory_ids" must hold ids of memories'),
        ({"memory_ids": []}, '"memory_ids" must not be an empty list'),
        ({"memory_ids": {"ne": _ID}}, '"memory_ids" does not take the operator "ne"'),
        ({"text": {"gt": "a"}}, '"text" does not take the operator "gt"'),
        ({"metadata": "v"}, '"metadata" must be an object'),
        ({"metadata": {}}, '"metadata" must be an object with at least one key'),
        ({"metadata": {"k": {"in": [1]}}}, '"metadata.k" does not take the operator "in".*OR of equalities'),
        ({"metadata": {"k": {"gt": 1}}}, '"metadata.k" does not take the operator "gt"'),
        ({"metadata": {"k": {"$gt": 1}}}, r'"metadata.k" does not take the operator "\$gt"'),
        ({"metadata": {"k": {">": 1}}}, '"metadata.k" does not take the operator ">"'),
        ({"metadata": {"k": {"eq": 1, "plain": 2}}}, '"metadata.k" does not take the operator "plain"'),
        ({"metadata": {"k": {"sub": {"gt": 1}}}}, '"metadata.k" holds an operator below its first level'),
        ({"metadata": {"k": {"sub": [{"ne": 1}]}}}, '"metadata.k" holds an operator below its first level'),
        ({"metadata": {"k": {"contains": {}}}}, '"metadata.k" must be a string, a number, true or false'),
        ({"metadata": {"k": {"contains": ""}}}, '"metadata.k" must not be empty'),
        ({"metadata": {"k": float("nan")}}, '"metadata.k" must not be NaN'),
        ({"metadata": {"k": {"eq": [float("inf")]}}}, '"metadata.k" must not be NaN or infinite'),
        ({"metadata": {"k": ["\0"]}}, r'"metadata.k" must not contain U\+0000'),
        ({"metadata": {"k": {"a": {"\0": 1}}}}, r'"metadata.k" must not contain U\+0000'),
        ({"metadata": {"\0": 1}}, r'"metadata" must not contain U\+0000'),
        ({"metadata": {"k": date(2024, 1, 1)}}, '"metadata.k" must be a JSON value'),
        ({"metadata.": 1}, '"metadata." must name one key'),
        ({"metadata.a.b": 1}, '"metadata.a.b" must name one key'),
        ({"metadata": {"k": 10**400}}, '"metadata.k" must not hold a number'),
        ({"\0": 1}, r'"filters" must not contain U\+0000'),
        ({"AND": [{1: "a"}]}, '"filters" must be a string, not a number'),
        ({"user_id": {1: "a"}}, '"user_id" does not take the operator "1"'),
        ({"metadata": {1: "a"}}, '"metadata" must be a string'),
        ({"metadata": {"k": {1: "a"}}}, '"metadata.k" must be a string'),
        ({"metadata": {"k": b"a"}}, '"metadata.k" must be a JSON value'),
        ({"metadata.\0": 1}, r"must not contain U\+0000"),
    ],
)
def test_a_refusal_names_the_key_and_what_to_do(raw: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as refused:
        parse(raw)
    refused.value.message.encode()  # can be sent, whatever the caller wrote


@pytest.mark.parametrize("field", ["created_at", "updated_at", "timestamp", "expiration_date"])
@pytest.mark.parametrize(
    "value",
    [
        "2099-02-30", "12/31/2099", "20240731", "2024-07-31T25:00:00Z", "2024-07-31T", "today", "", "0000-01-01", "2024-7-1",
        "٢٠٢٤-٠٧-٣١", "0001-01-01T00:00:00+14:00", 1e18, 1722427200000, float("nan"), 10**400, True, None, {"gte": None},
    ],
)  # fmt: skip
def test_what_is_no_moment_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=f'"{field}" must be a date'):
        parse({field: value})


def test_an_unknown_key_is_answered_with_the_allowed_ones_in_their_order() -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse({"user_id": "alice", "bogus_key": "z"})
    assert refused.value.message == (
        "Top-level key must be a logical operator or an allowed field (AND, OR, NOT, user_id, agent_id, app_id, run_id, "
        "created_at, updated_at, timestamp, expiration_date, text, categories, metadata, keywords_search, memory_ids, "
        'keywords); "bogus_key" is neither.'
    )


def test_a_refusal_repeats_no_more_than_the_start_of_a_key() -> None:
    for key in ("x" * 100_000, "\ud800" * 100_000, "\0" * 100_000):
        with pytest.raises(InvalidRequest) as refused:
            parse({key: 1})
        assert len(refused.value.message.encode()) < 1000


def nested(depth: int) -> Any:
    raw: Any = {"user_id": "alice"}
    for n in range(depth):
        raw = {"NOT": raw} if n % 2 else {"AND": [raw]}
    return raw


def test_nesting_is_refused_past_its_limit_at_any_depth() -> None:
    parse(nested(10))
    for depth in (11, 100_000):
        with pytest.raises(InvalidRequest, match="nested too deep: at most 10 levels"):
            parse(nested(depth))


def test_depth_of_a_metadata_value_is_limited_without_recursion() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InvalidRequest, match="deeper than 64 levels"):
        parse({"metadata": {"k": value}})
    while value != 1:  # taken apart from outside, as the interpreter would recurse
        value = value[0]


def test_conditions_are_counted_over_the_whole_tree() -> None:
    parse({"OR": [{"user_id": f"u{n}"} for n in range(200)]})
    with pytest.raises(InvalidRequest, match='"user_id" is one condition too many: at most 200'):
        parse({"OR": [{"user_id": f"u{n}"} for n in range(201)]})
    with pytest.raises(InvalidRequest, match='"metadata" is one condition too many'):
        parse({"user_id": "alice", "metadata": {str(n): n for n in range(200)}})
    with pytest.raises(InvalidRequest, match='"keywords_search" is one condition too many'):
        parse({"keywords_search": "a " * 201})


@pytest.mark.parametrize(
    "raw",
    [
        {"user_id": "alice"},
        {"AND": [{"user_id": "*"}]},
        {"OR": [{"run_id": {"in": ["a"]}}, {"categories": ["food"]}]},
        {"NOT": {"metadata": {"k": 1}}, "app_id": "web"},
        {"agent_id": {"exists": True}},
        {"user_id": {"ne": "bob", "eq": "alice"}},
    ],
)
def test_a_positively_named_owner_is_enough(raw: Any) -> None:
    filters.require_owner(parse(raw))


@pytest.mark.parametrize(
    "raw",
    [
        {"categories": ["food"]},
        {"metadata": {"user_id": "alice"}},
        {"memory_ids": [_ID]},
        {"user_id": {"ne": "alice"}},
        {"user_id": {"nin": ["alice"]}},
        {"user_id": {"exists": False}},
        {"NOT": {"user_id": "alice"}},
        {"NOT": {"NOT": {"user_id": "alice"}}},
        {"OR": [{"NOT": {"user_id": "*"}}, {"metadata": {"k": 1}}]},
    ],
)
def test_without_a_positively_named_owner_the_rule_is_told(raw: Any) -> None:
    with pytest.raises(InvalidRequest, match="at least one of user_id, agent_id, app_id, run_id.*ne and NOT alone"):
        filters.require_owner(parse(raw))


@pytest.mark.parametrize(
    ("raw", "null"),
    [
        ({"user_id": "alice"}, ("agent_id", "app_id", "run_id")),
        ({"AND": [{"user_id": "alice"}]}, ("agent_id", "app_id", "run_id")),
        ({"AND": [{"user_id": "alice"}, {"run_id": "*"}]}, ("agent_id", "app_id")),
        ({"AND": [{"user_id": "alice"}, {"NOT": {"agent_id": "bot"}}]}, ("app_id", "run_id")),
        ({"AND": [{"OR": [{"user_id": "alice"}, {"agent_id": "bot"}]}]}, ("app_id", "run_id")),
        ({"OR": [{"user_id": "alice"}], "run_id": "s"}, ("agent_id", "app_id")),
        ({"user_id": {"nin": ["alice"]}}, ("agent_id", "app_id", "run_id")),
        ({"user_id": "alice", "agent_id": {"exists": False}}, ("app_id", "run_id")),
        ({"metadata": {"user_id": "alice"}}, OWNER_FIELDS),
    ],
)
def test_owners_that_are_not_named_are_demanded_null(raw: Any, null: tuple[str, ...]) -> None:
    node = parse(raw)
    assert filters.null_scoped(node) == And((node, *(Condition(name, Operator.EXISTS, False) for name in null)))


@pytest.mark.parametrize(
    "raw",
    [
        {"OR": [{"user_id": "alice"}]},
        {"OR": [{"user_id": "alice"}, {"agent_id": "bot"}]},
        {"NOT": {"user_id": "alice"}},
        dict.fromkeys(OWNER_FIELDS, "*"),
    ],
)
def test_a_root_or_a_root_not_or_naming_all_adds_nothing(raw: Any) -> None:
    assert filters.null_scoped(parse(raw)) == parse(raw)


_TODAY = date(2024, 7, 31)
_UNEXPIRED = Or(
    (Condition("expiration_date", Operator.EXISTS, False), Condition("expiration_date", Operator.GTE, _TODAY))
)
_UNMERGED = Condition("state", Operator.IN, ("active", "superseded"))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, (_UNEXPIRED, _UNMERGED)),
        ({"show_expired": True, "latest_only": True}, (eq("state", "active"),)),
        ({"include_merged": True}, (_UNEXPIRED,)),
        (
            {"categories": ["food"], "keywords": " tea ", "metadata": {"k": {"ne": 1}}},
            (
                Condition("categories", Operator.IN, ("food",)),
                Condition("metadata", Operator.NE, 1, "k"),
                Condition("text", Operator.ICONTAINS, "tea"),
                _UNEXPIRED,
                _UNMERGED,
            ),
        ),
        (
            {"start_date": "2024-07-01", "end_date": date(2024, 7, 31), "keywords": "", "metadata": {}},
            (
                Condition("created_at", Operator.GTE, date(2024, 7, 1)),
                Condition("created_at", Operator.LTE, date(2024, 7, 31)),
                _UNEXPIRED,
                _UNMERGED,
            ),
        ),
    ],
)
def test_what_stands_beside_filters_is_anded(options: dict[str, Any], parts: tuple[FilterNode, ...]) -> None:
    assert filters.narrow(ALICE, today=_TODAY, **options) == And((ALICE, *parts))


def test_nothing_to_narrow_leaves_the_tree_alone() -> None:
    assert filters.narrow(ALICE, today=_TODAY, show_expired=True, include_merged=True) is ALICE


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"categories": []}, '"categories" must not be an empty list'),
        ({"categories": "food"}, '"categories" must be a list'),
        ({"metadata": "food"}, '"metadata" must be an object'),
        ({"keywords": 1}, '"keywords" must be a string'),
        ({"start_date": "2024-02-30"}, '"start_date" must be a date'),
        ({"end_date": "yesterday"}, '"end_date" must be a date'),
    ],
)
def test_a_wrong_parameter_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        filters.narrow(ALICE, today=_TODAY, **options)
