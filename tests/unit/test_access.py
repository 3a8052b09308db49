"""Keys without a database: their form, their checksum."""

from __future__ import annotations

import re

import pytest

from app.domain import access


def test_key_has_prefix_43_random_characters_and_a_checksum() -> None:
    assert re.fullmatch(r"m0-[0-9A-Za-z]{43}[0-9A-Za-z]{6}", access.new_secret())


def test_two_keys_differ() -> None:
    assert access.new_secret() != access.new_secret()


def test_new_key_is_well_formed() -> None:
    assert access.well_formed(access.new_secret())


@pytest.mark.parametrize("position", [3, 20, 45, 46, 51])
def test_one_changed_character_is_noticed_without_a_query(position: int) -> None:
    secret = access.new_secret()
    other = "a" if secret[position] != "a" else "b"
    assert not access.well_formed(secret[:position] + other + secret[position + 1 :])


@pytest.mark.parametrize("secret", ["", "m0-", "None", "null", "m0-" + "a" * 49, "sk-" + "a" * 49, "m0-" + "é" * 49])
def test_what_is_no_key_is_not_well_formed(secret: str) -> None:
    assert not access.well_formed(secret)


def test_key_is_stored_as_a_digest_of_32_bytes() -> None:
    secret = access.new_secret()
    assert len(access.digest_of(secret)) == 32
    assert secret.encode() not in access.digest_of(secret)
