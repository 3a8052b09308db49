"""What is no statement of a person leaves hardly a trace, and what is stays: four sets of messages, English and Chinese."""

from __future__ import annotations

from bench import junk

SETS = sorted(junk.DATA.parent.glob("junk*.json"))


def test_under_five_percent_of_what_is_stored_is_junk_and_few_facts_are_lost() -> None:
    total = wrong = facts = kept = made = 0
    for file in SETS:
        messages, spoiled, stored = junk.count(junk.read(file))
        total += messages.total() - messages["fact"]
        facts += messages["fact"]
        wrong += spoiled.total() - spoiled["fact"]
        kept += messages["fact"] - spoiled["fact"]
        made += stored.total()
    assert (total, facts) == (771, 151)
    assert wrong / total < 0.03
    assert wrong / made < 0.05
    assert kept / facts > 0.95
