from __future__ import annotations

import pytest

from app.domain import link


def norms(text: str) -> list[str]:
    return [e.norm for e in link.entities(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My coworker Tavish moved to New York.", ["tavish", "new york"]),
        ("Yesterday Mark and Rose visited Paris.", ["mark", "rose", "paris"]),
        ("Coffee is good. Meeting went well. Thanks!", []),
        ("I met Jean's sister at the Museum of Modern Art.", ["jean", "museum of modern art"]),
        ("We read “The Hobbit” and 《三体》.", ["hobbit", "三体"]),
        ("Order ORD-22931 goes to a.b@example.com, version v2.3.1", ["ord-22931", "a.b@example.com", "v2.3.1"]),
        ("see https://example.com/a?b=1.", ["https://example.com/a?b=1"]),
        ("My iPhone 15 runs LLVM", ["iphone 15", "llvm"]),
        ("On Monday I will tell Will.", ["will"]),
        ("我叫林小满，在青禾公司做测试，去过上海", ["林小满", "青禾公司", "上海"]),
        ("用户和Thresh去了北京大学", ["thresh", "北京大学"]),
        ("谢谢，我明白了，今天很高兴", []),
        ("When did Zoë go to São Paulo?", ["zoë", "são paulo"]),
        ("Bramble's log is long. Thresh sat in. Today's dinner was good.", ["bramble", "thresh"]),
        ("I met Pell Halloran of Carag-aana Press.", ["pell halloran", "carag-aana press"]),
        ("The Nikon D7500 runs v4.2.0.", ["nikon d7500", "v4.2.0"]),
        ("我妹妹王小蓓和老马去了迪士尼", ["王小蓓", "老马", "迪士尼"]),
        ("欧阳娜娜在字节跳动上班，铃木先生用阿里云", ["欧阳娜娜", "字节跳动", "铃木", "阿里云"]),
        ("同事赵明远说小陈喜欢《塞尔达传说》", ["赵明远", "小陈", "塞尔达传说"]),
        ("", []),
        ("?!… 123 45", []),
    ],
)
def test_names_are_found_and_common_words_are_not(text: str, expected: list[str]) -> None:
    assert norms(text) == expected


@pytest.mark.parametrize(
    "form", ["Caroline", "caroline's", "CAROLINE", "Caroline’s", " “Caroline” ", "Ｃａｒｏｌｉｎｅ", "Mrs. Caroline"]
)
def test_forms_of_one_name_have_one_norm(form: str) -> None:
    assert link.normal(form) == "caroline"


def test_a_query_and_a_memory_agree_on_their_entities() -> None:
    assert set(norms("Did Tavish get the order ORD-22931?")) <= set(norms("Tavish got ORD-22931 in Oslo."))


def test_the_number_of_entities_is_bounded() -> None:
    text = " ".join(f"Zan{chr(97 + i % 26)}{chr(97 + i // 26)} met" for i in range(300))
    assert len(link.entities(text)) == link.MOST


def test_an_entity_is_named_as_written_with_its_kind() -> None:
    (entity,) = link.entities("I like 《活着》")
    assert (entity.name, entity.norm, entity.kind) == ("活着", "活着", "QUOTED")
