"""Answers of chat models are read as they were meant, and no further."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.providers import answers

SCHEMA = {"type": "object", "required": ["facts"], "properties": {"facts": {"type": "array"}}}
TEA = {"facts": ["likes tea"]}


@pytest.mark.parametrize(
    "content",
    [
        '{"facts":["likes tea"]}',
        ' \n{"facts": ["likes tea"]}\n',
        '```json\n{"facts":["likes tea"]}\n```',
        '```\n{"facts":["likes tea"]}\n```',
        '```JSON {"facts":["likes tea"]}```',
        'Sure:\n```json\n{"facts":["likes tea"]}\n```\nAnything else?',
        'Here are the facts: {"facts":["likes tea"]} Hope this helps {smile}',
        '{smile} {"facts":["likes tea"]} {"facts":["second"]}',
        '<think>maybe {"facts":["wrong"]}</think>\n{"facts":["likes tea"]}',
        'maybe {"facts":["wrong"]}</think>\n{"facts":["likes tea"]}',
        '<think>a <think>b</think> {"facts":["wrong"]}</think>{"facts":["likes tea"]}',
        '<thinking>{"facts":["wrong"]}</thinking>{"facts":["likes tea"]}',
        '<think>maybe {"facts":["wrong"]}\n{"facts":["likes tea"]}',
        '<think>\nmaybe:\n{"facts":["wrong"]}\nno, this:\n```json\n{\n  "facts": [\n    "likes tea"\n  ]\n}\n```\n',
        '{"facts":["likes tea"]}<think>was that right?',
        '{"result": {"facts":["likes tea"]}}',
        'I answer in the form {"facts":[]}. {"facts":["likes tea"]}',
        '["likes tea"]',
        '[{"facts":["likes tea"]}]',
        '{"facts":["likes tea",]}',
        "{'facts': ['likes tea']}",
        '{facts: ["likes tea"]}',
        '{"facts":["likes tea"]',
    ],
)
def test_the_value_is_found_behind_and_inside_everything_else(content: str) -> None:
    assert answers.read(content, SCHEMA) == answers.Reading(TEA, whole=True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>only thoughts</think>", "empty"),
        ('<think>never closed {"facts":["wrong"]}', "empty"),
        ('<think>never closed\n{"facts":["wrong"]}\nso I would say', "empty"),
        ('<think>never closed\n{"facts":["wr', "empty"),
        ('<think>never closed\n{"facts":null}', "empty"),
        ("think>\nlong text only", "no_json"),
        ("see [1] and {x}", "no_json"),
        ('{"facts":null}', "wrong_shape"),
        ('{"facts":"likes tea"}', "wrong_shape"),
        ('{"other":["likes tea"]}', "wrong_shape"),
        ("[" * 100_000, "no_json"),
        ("{" * 100_000, "no_json"),
        ('{"facts":[', "cut"),
        ('{"facts":["likes t', "cut"),
        ('{"facts":[{"text":"likes t', "cut"),
    ],
)
def test_an_answer_of_no_use_has_a_reason_and_no_value(content: str, reason: str) -> None:
    assert answers.read(content, SCHEMA) == answers.Reading(reason=reason)


@pytest.mark.parametrize(
    ("content", "items"),
    [
        ('{"facts":["likes tea","likes cof', ["likes tea"]),
        ('```json\n{"facts":["a, \\"b\\" ]}","likes cof', ['a, "b" ]}']),
        ('{"facts":[{"text":"a","messages":[1,2]},{"text":"b","mess', [{"text": "a", "messages": [1, 2]}]),
        ('{"facts":[{"text":"a"},{"text":"b"}', [{"text": "a"}, {"text": "b"}]),
        ('I see {smile}: {"facts":["likes tea", 5', ["likes tea"]),
    ],
)
def test_a_cut_list_keeps_its_complete_items_and_is_not_whole(content: str, items: list[object]) -> None:
    assert answers.read(content, SCHEMA) == answers.Reading({"facts": items}, whole=False, reason="cut")


def test_a_thought_that_was_cut_is_no_answer_wherever_it_stops() -> None:
    assert answers.read('<think>maybe\n{"facts":["wrong"]}', SCHEMA, cut=True) == answers.Reading(reason="empty")


@pytest.mark.parametrize(
    "content",
    ['{"facts": []}', '```json\n{"facts": []}\n```', 'Small talk, so: {"facts": []}', '<think>hm</think>{"facts":[]}'],
)
def test_a_truly_empty_list_is_whole(content: str) -> None:
    assert answers.read(content, SCHEMA) == answers.Reading({"facts": []}, whole=True)


@pytest.mark.parametrize(
    ("content", "cut", "reason"),
    [
        ("[]", False, "wrong_shape"),  # a list of what?
        ("{'facts': [],}", False, "wrong_shape"),  # the damage may be what is missing
        ('{"facts": [], "error": "too long"}', False, "wrong_shape"),
        ('{"error": {"facts": []}}', False, "wrong_shape"),
        ('{"facts": []} {"facts": ["likes te', False, "cut"),
        ('I answer in the form {"facts": []}. Now for the', True, "cut"),
        ('<think>if there is nothing:\n{"facts": []}', False, "empty"),
    ],
)
def test_an_empty_list_is_no_answer_where_anything_is_wrong_with_it(content: str, cut: bool, reason: str) -> None:
    schema = SCHEMA | {"additionalProperties": False}
    assert answers.read(content, schema, cut=cut) == answers.Reading(reason=reason)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"tea \ud83c\udf75", "tea 🍵"),
        (r"tea \ud83c", "tea \ufffd"),
        (r"tea \udf75\ud83c", "tea \ufffd\ufffd"),
        (r"C:\\ud83c", r"C:\ud83c"),
        ("tea \ud83c", "tea \ufffd"),
    ],
)
def test_halves_of_surrogate_pairs_never_get_through(written: str, read: str) -> None:
    assert answers.read(f'{{"facts":["{written}"]}}', SCHEMA).value == {"facts": [read]}


def test_a_tag_inside_a_string_is_not_a_thought() -> None:
    assert answers.read('{"facts":["asked what </think> means"]}', SCHEMA).value == {
        "facts": ["asked what </think> means"]
    }


def test_a_complete_value_is_whole_even_if_the_model_ran_out_of_room_after_it() -> None:
    assert answers.read('{"facts":["likes tea"]} and then I', SCHEMA, cut=True).whole


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=4), st.data())
def test_a_cut_anywhere_never_invents_or_shortens_an_item(items: list[str], data: st.DataObject) -> None:
    import json

    whole = json.dumps({"facts": items}, ensure_ascii=data.draw(st.booleans()))
    reading = answers.read(whole[: data.draw(st.integers(0, len(whole) - 3))], SCHEMA)
    kept = reading.value["facts"] if reading.value else []
    assert kept == items[: len(kept)]
    assert not reading.whole


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='{}[]",:\\ab<think>/facts', max_size=200))
def test_no_answer_breaks_the_reader(content: str) -> None:
    reading = answers.read(content, SCHEMA)
    assert reading.whole or reading.reason
    assert reading.value is None or isinstance(reading.value["facts"], list)
