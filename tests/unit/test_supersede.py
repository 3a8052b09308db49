"""The rule that says without a model what replaces what: rather ten missed than one wrong."""

from __future__ import annotations

import pytest

from app.domain import supersede


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("User lives in Berlin.", "User lives in Munich."),
        ("User lives in Berlin.", "User moved to Lisbon last week (27 April – 3 May 2026)."),
        ("User moved to Lisbon last week (27 April – 3 May 2026).", "Actually User lives in Munich now."),
        ("I live in Berlin", "User has just moved to Rome, and is allergic to peanuts."),
        ("User lives in Berlin.", "User: I moved to Lisbon, and I am allergic to peanuts."),
        ("Anna lives in Berlin.", "Anna: I live in Rome now."),
        ("User works at Acme Corp.", "User is now working for Globex as a nurse."),
        ("User works as a nurse.", "User works as a teacher."),
        ("User's favourite colour is green.", "User's favorite color is blue."),
        ("User's phone number is 555-1234.", "User's new phone number is 555-9999."),
        ("User's email is a@b.com.", "User's email address is c@d.org."),
        ("User's address is 12 Main Street", "User's address is 9 Elm Road"),
        ("User is 34 years old.", "User just turned 35."),
        ("User's name is Anna.", "User's name is Hannah."),
        ("User's sister lives in Oslo.", "User's sister lives in Bergen."),
        ("用户住在北京。", "用户搬到上海了。"),
        ("用户的电话是13800138000。", "用户的手机号是13900139000。"),
        ("用户的邮箱是a@b.com", "用户的邮箱改成了c@d.com"),
        ("用户最喜欢的颜色是绿色。", "用户最喜欢的颜色是蓝色。"),
        ("用户今年（2026年）34岁。", "用户35岁。"),
        ("用户在青禾公司上班。", "用户跳槽到红杉公司了。"),
        ("我住在北京", "用户现在住在深圳。"),
    ],
)
def test_another_value_of_the_same_attribute_contradicts(older: str, newer: str) -> None:
    was = supersede.sole_claim(older)
    assert was is not None
    assert any(claim.contradicts(was) for claim in supersede.claims(newer))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("User lives in Berlin.", "User's sister lives in Oslo."),
        ("User lives in Berlin.", "Anna lives in Rome."),
        ("User lives in Berlin.", "Anna: I live in Rome."),
        ("User lives in Berlin.", "User lives in Berlin, Germany."),
        ("User lives in Paris, France.", "User lives in Paris."),
        ("User lives in Berlin.", "User lived in Rome."),
        ("User lives in Berlin.", "User wants to live in Rome."),
        ("User lives in Berlin.", "User may move to Rome."),
        ("User lives in Berlin.", "User doesn't live in Rome."),
        ("User lives in Berlin.", "User moved to the kitchen."),
        ("User lives in Berlin.", "If User lives in Rome, the tax is higher."),
        ("User lives in Berlin.", "User will be living in Rome during the summer."),
        ("User works at Acme.", "User also works at Globex."),
        ("User works at Acme.", "User works from home."),
        ("User's phone number is 555-1234.", "User's phone number is +1 555-1234."),
        ("User's email is a@b.com.", "User's work email is c@d.org."),
        ("User's favourite colour is green.", "User's favourite food is pizza."),
        ("User's name is Anna.", "User's mother's name is Eva."),
        ("User likes tea.", "User likes coffee."),
        ("User has a dog.", "User has a cat."),
        ("User is in Paris.", "User is in Rome."),
        ("User lives in Berlin. User is allergic to nuts.", "User lives in Rome."),
        ("User lives in Berlin with her sister.", "User lives in Rome."),
        ("用户住在北京。", "用户想住在上海。"),
        ("用户住在北京。", "用户以前住在上海。"),
        ("用户住在北京。", "用户的妹妹住在广州。"),
        ("用户住在北京，在青禾公司上班。", "用户住在上海。"),
        ("用户的电话是13800138000。", "用户的妈妈的电话是13900139000。"),
    ],
)
def test_what_may_be_so_as_well_does_not(older: str, newer: str) -> None:
    was = supersede.sole_claim(older)
    assert was is None or not any(claim.contradicts(was) for claim in supersede.claims(newer))


@pytest.mark.parametrize(
    "text", ["", " ", ".", "。。。", "User" * 50, "User's " * 60, "User lives in " + "A" * 350, "(" * 399]
)
def test_any_text_is_read(text: str) -> None:
    supersede.sole_claim(text)
    supersede.claims(text * 3)
