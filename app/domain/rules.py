"""Facts without a model: what declarative sentences state is kept by default, talk is dropped. English and Chinese.

Keeping is the default because the opposite, a list of what is worth keeping, fails on every text it was not written for.
A fact keeps the words that were said, names its speaker, and carries its dates in absolute form.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.domain import dates, days, link, machine, refer, rules_en, rules_zh, sentences, talk_en, voice
from app.domain.conversation import Conversation
from app.model import Fact, Message, Source

JOINED = 240  #: characters up to which neighbouring statements of one message become one fact
MACHINE_STATEMENTS = 6  #: of one message of an assistant that is no person; its long answers are mostly general advice
LONGEST = sentences.LONGEST  #: characters up to which a statement joins the one that it depends on

_MACHINES = frozenset(
    "assistant ai bot chatbot agent system model gpt chatgpt claude gemini llm user 助手 机器人 用户 客服".split()
)
_PREFIX = re.compile(r"([A-Z][\w.'’-]{0,20}(?: [A-Z][\w.'’-]{0,20}){0,2}|[\u4e00-\u9fff]{1,6})[:：]\s{0,3}")
_DEPENDS_EN = re.compile(
    r"(?:it|he|she|they|that|this|these|those|there|his|her|their|its|but|and|so|also|then|because|which|or|plus|both|"
    r"except|instead|otherwise|one|another|each|either|neither|not|same|the\s(?:other|first|second|last|former|latter))\b|\[",
    re.I,
)
_DEPENDS_ZH = re.compile(r"[它他她这那其另还也但所因而并然不再都又]|可是|于是|结果|后来|同时")
_THIRD_PERSON = re.compile(
    r"(?:the|a|an|his|her|their|he|she|they|it|there|these|those|this|that|every|each|all|both|some|no)\b", re.I
)
_NAME_FIRST = re.compile(
    r"(?!(?:We|You|I|My|Our|Not|Just)\b)[A-Z][\w'’-]{1,30}+(?:\s(?:[A-Z][\w'’-]{0,30}+|and|of|de|van|&)){0,4}\s(?:is|are|was|were|has|have|had|will|would|can|[a-z]{2,16}s|[a-z]{2,16}ed|went|got|said|told)\b"
)
_JUST_EN = re.compile(
    r"\b(?:I|we|[A-Z][a-z]{1,20}|he|she|they)(?:['’](?:ve|s)|\s(?:has|have))?\s(?:just|finally|recently)\s(?:[a-z]{2,18}ed|"
    rf"{'|'.join(sorted(voice.PAST_FORMS))}|had|been|done|gone|seen|quit)\b"
)
_JUST_ZH = re.compile(r"(?:刚刚?|终于|总算)[^，。]{1,30}(?:了|过|完|到|来)")
_ASSISTANT_EN = re.compile(
    r"\bI(?:['’]ve|\shave|['’]d|\swould|['’]ll|\swill|['’]m|\sam)?\s(?:also\s|just\s|now\s|already\s|strongly\s|highly\s)?"
    r"(?:recommend|suggest|book|reserv|schedul|creat|sent|send|set|sav|add|order|cancel|updat|found|find|confirm|arrang|chose|"
    r"choos|decid|agree|promis|remind|not|prefer|advis|propos|pick|pa(?:id|y)|bought|buy|register|sign|submit|upload|fix|chang|"
    r"switch|moved?|mov|review|prepar|draft|track|turn|start|stop|enabl|disabl)\w{0,6}\b|"
    r"\b(?:my|our)\s(?:recommendation|suggestion|advice|pick|choice)\b|\b(?:we|you)\s(?:agreed|decided|settled|chose|planned)\b|"
    r"^(?:your\s(?:[\w'’-]{1,20}\s){1,4}(?:is|are|was|has\sbeen|have\sbeen|will\sbe|expires?|starts?|arrives?|departs?)\b|"
    r"(?:(?:so|as|since)\s)?you\s(?:like|love|prefer|live|work|are\s(?:allergic|vegetarian|vegan)))",
    re.I,
)
_ADVICE_EN = re.compile(
    r"\byou\s(?:should|could|might|can)\s(?:try|visit|read|watch|see|consider|check)\b[^.!?]{0,80}?(?:\s[A-Z]|[\"“*])"
)
_ASSISTANT_SELF = re.compile(r"\b(?:I\s(?:went|had|got|grew|moved|lived|worked|painted|bought|saw|met|used\sto)|my\s(?:wife|husband|kids?|son|daughter|"
                             r"mom|mum|dad|brother|sister|friend|family|dog|cat|job|boss|house|school|birthday))\b", re.I)  # fmt: skip
_ASSISTANT_ZH = re.compile(
    r"(?:我|已|已经)(?:会|已经|已|刚刚|刚|们)?(?:为您|为你|帮您|帮你|给您|给你)?(?:推荐|建议|预订|预定|订好|订了|安排|创建|设置|发送|发了|保存|添加|下单|取消|更新|确认|选|决定|答应|提醒|预约|购买|修改|登记)|"
    r"(?:可以|不妨|建议)(?:你|您)?(?:试试|看看|尝试|考虑|读|听|用|选).{0,20}[《A-Za-z0-9]|(?:您|你)的.{1,12}(?:是|在|将|已|会)|推荐《|试试《"
)
_TOLD_AGAIN = re.compile(  # what the user has said before, or a memory: it comes from there and not from this message
    r"^(?:as|like)\syou\s(?:told|said|mentioned)|\bi\sremember\b|\bwhat\si\s(?:know|remember)\b|\b(?:my|your)\smemor(?:y|ies)\b|^you\s(?:told|said|mentioned)|^(?:since|as|because)\syou(?:['’]re)?\b|^(?:according\sto|from)\s(?:my|our)\b|^your\s(?:saved|stored)\b|"
    r"^(?:根据|按照)?(?:我的)?(?:记忆|记录|笔记)|^(?:您|你)(?:保存|记录)的|我记得|^(?:您|你)(?:之前|以前|曾经|上次)?(?:说过|提到过?|告诉过)",
    re.I,
)
_OF_WORK = re.compile(
    r"\b(?:functions?|suite|tests?|scripts?|files?|variables?|imports?|linter|branch|commits?|modules?|matches|screenshots?|configs?|build|code|chart|legend|layout)\b|"
    r"函数|测试|代码|脚本|变量|文件|截图|匹配|编译|构建|图表|(?<![\w.])/[\w.-]{1,40}/",
    re.I,
)
_TO_USER = re.compile(r"\byou(?:r|rs)?\b|[您你]", re.I)
_BOILERPLATE = re.compile(
    r"(?:I(?:['’]m|\sam)\s(?:sorry|glad|happy|here|just|an?\sAI|not\s(?:able|sure))|I\s(?:apologi[sz]e|understand|see|hope|can['’]t|cannot|don['’]t\shave)|"
    r"as\san\sAI|(?:here|below)\s(?:are|is)\b|let\sme\b|feel\sfree|if\syou\b|would\syou|remember\sto\b|sure\b|certainly\b)",
    re.I,
)


_OF_ME_EN = re.compile(r"(?:I|we|my|our)\b", re.I)
_OF_YOU_EN = re.compile(r"(?:and\s|but\s|so\s)?(?:you|your)\b", re.I)
_OF_YOU_ZH = re.compile(r"(?:但是?|所以|而且)?[你您](?!们)")


@dataclass(frozen=True, slots=True)
class _Speaker:
    name: str | None  # as the application or the text gives it
    role: str  # user or assistant
    human: bool  # speaks for themself; a machine's words count only where they concern the user
    alone: bool = False  # among machines: what is said of "you" is said of no person

    def label(self, *, chinese: bool) -> str:
        """Return how facts call the speaker."""
        if self.name is not None and self.human:
            return self.name
        return {"user": ("User", "用户"), "assistant": ("Assistant", "助手")}[self.role][chinese]


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    start: int
    end: int
    chinese: bool


def facts(conversation: Conversation) -> list[Fact]:
    """Return the facts that the new messages state, in the order of speaking; the same input gives the same facts."""
    prefixed = _prefixes(conversation.messages)
    names = _first_names(conversation, prefixed)
    found: dict[str, Fact] = {}
    last = conversation.earlier[-1] if conversation.earlier else None
    meant = {(m.role, m.name): refer.people(m.content) for m in conversation.earlier}
    for message in conversation.messages:
        if message.role not in ("user", "assistant") or not message.content.strip():
            continue
        speaker, offset = _speaker(conversation, message, prefixed)
        asked = last is not None and (last.role, last.name) != (message.role, message.name)
        question = _last_question(last.content) if last and asked else None
        known = meant.get((message.role, message.name), {}) if speaker.human else {}
        for fact in _message_facts(conversation, message, speaker, offset, names, question, known):
            found.setdefault(fact.text, fact)
        meant[message.role, message.name] = refer.people(message.content) or known
        last = message
    return list(found.values())


def _prefixes(messages: tuple[Message, ...]) -> frozenset[str]:
    """Return the names that stand as "Name: " before the text, where most messages have one."""
    heads = Counter(m.group(1) for x in messages if (m := _PREFIX.match(x.content)))
    if len(messages) < 2 or sum(heads.values()) * 5 < len(messages) * 3:
        return frozenset()
    return frozenset(heads)


def _first_names(conversation: Conversation, prefixed: frozenset[str]) -> frozenset[str]:
    speakers = {m.name for m in (*conversation.messages, *conversation.earlier) if m.name} | prefixed
    words = {part.casefold() for name in speakers for part in name.split()} | {name.casefold() for name in speakers}
    return frozenset(words | {w[:3] for w in words if len(w) > 5 and w.isascii()})


def _speaker(conversation: Conversation, message: Message, prefixed: frozenset[str]) -> tuple[_Speaker, int]:
    """Return who speaks, and where in the message the speech begins."""
    name, offset = message.name, 0
    head = _PREFIX.match(message.content)
    if head and (head.group(1) in prefixed or (name and head.group(1).casefold() == name.casefold())):
        name, offset = name or head.group(1), head.end()
    named = name is not None and bool(name.strip()) and name.strip().casefold() not in _MACHINES
    human = message.role == "user" or named or conversation.agent_only
    alone = human and not named and message.role == "user"
    return _Speaker(name.strip() if named and name else None, message.role, human, alone), offset


def _message_facts(
    conversation: Conversation,
    message: Message,
    speaker: _Speaker,
    offset: int,
    names: frozenset[str],
    question: str | None,
    known: Mapping[str, str],
) -> Iterator[Fact]:
    said_at = conversation.said_at(message)
    stated = _statements(message.content[offset:], speaker, names)
    if not speaker.human:
        stated = stated[:MACHINE_STATEMENTS]
    elif not stated and question:
        stated = _answer(message.content[offset:], names)
    elif speaker.alone and len(stated) == 1 and not question and _is_passing(stated[0]):
        return
    stated = [replace(s, text=refer.named(s.text, known)) if n == 0 else s for n, s in enumerate(stated)]
    for number, group in enumerate(_groups(stated)):
        spans = [dates.find(s.text, base=said_at) for s in group]
        text = _tell(group, spans, said_at, speaker)
        if number == 0 and question and speaker.human and _is_answer(group):
            text += f"（回答“{question}”）" if group[0].chinese else f' (asked: "{question}")'
        elif _is_fragment(group):
            continue
        happened = list(_happened(group, spans, said_at))
        yield Fact(
            text=text,
            role=message.role,
            actor=speaker.name,
            sources=_sources(group, message.index, offset),
            happened_from=min((start for start, _ in happened), default=None),
            happened_to=max((end for _, end in happened), default=None),
        )


def _is_passing(statement: _Statement) -> bool:
    passing = (rules_zh if statement.chinese else talk_en).is_passing(statement.text)
    return passing and not link.entities(statement.text)


def _answer(text: str, names: frozenset[str]) -> list[_Statement]:
    """Return a whole short message as the one statement that it makes in reply to a question."""
    found = sentences.split(text)
    if len(found) != 1 or sentences.length(found[0].text) > 6:
        return []
    chinese = sentences.is_chinese(found[0].text)
    said = (rules_zh if chinese else rules_en).answer(found[0].text, names)
    return [_statement(x, found[0], chinese=chinese) for x in said]


def _is_answer(group: list[_Statement]) -> bool:
    """Tell whether a fact opens its message and is too short to be understood without the question before it."""
    return group[0].start < 40 and sentences.length(" ".join(s.text for s in group)) < 6


def _happened(
    group: list[_Statement], spans: list[list[dates.TimeSpan]], base: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times that the statements name; what was just done happened in the days before."""
    for statement, named in zip(group, spans, strict=True):
        yield from ((span.from_, span.to) for span in named)
        if not named and _was_just_done(statement):
            yield base - timedelta(days=3), base


def _was_just_done(statement: _Statement) -> bool:
    return (_JUST_ZH if statement.chinese else _JUST_EN).search(statement.text) is not None


def _statements(text: str, speaker: _Speaker, names: frozenset[str]) -> list[_Statement]:
    kept: list[_Statement] = []
    found = sentences.split(text)
    prompt = speaker.name is None and machine.is_prompt(text)
    at = 0
    while at < len(found):
        sentence = found[at]
        at += 1
        merged, at = _with_list(found, sentence, at)
        chinese = sentences.is_chinese(merged.text)
        if merged.text.endswith((":", "：")) and sentences.length(merged.text) < 6:
            continue  # the heading of what is no list, such as a block of code
        if machine.has_secret(merged.text) or (not speaker.human and not _concerns_user(merged.text, chinese=chinese)):
            continue
        if (prompt or speaker.alone) and _is_told_to_machine(merged.text, prompt=prompt, chinese=chinese):
            continue
        if speaker.human and not speaker.alone and not chinese and talk_en.is_praise(merged.text, names):
            continue
        stated = (rules_zh if chinese else rules_en).statements(merged.text, names)
        kept += [_statement(said, merged, chinese=chinese) for said in stated]
    return kept


def _is_told_to_machine(text: str, *, prompt: bool, chinese: bool) -> bool:
    """Tell whether a sentence is about the machine that is spoken to; in a prompt all are that do not begin with "I"."""
    if machine.has_trace(text) and not (talk_en.STATES_SELF.search(text) or "我" in text):
        return True
    if chinese:
        return not text.startswith("我") if prompt else _OF_YOU_ZH.match(text) is not None and "我" not in text
    if prompt:
        return _OF_ME_EN.match(text) is None
    return _OF_YOU_EN.match(text) is not None and not talk_en.STATES_SELF.search(text)


def _with_list(found: list[sentences.Sentence], intro: sentences.Sentence, at: int) -> tuple[sentences.Sentence, int]:
    """Return a line that ends in a colon together with the items of the list below it."""
    if not intro.text.endswith((":", "：")):
        return intro, at
    text, end = intro.text, intro.end
    while at < len(found) and found[at].bullet and len(text) + len(found[at].text) < LONGEST:
        text += (" " if text.endswith((":", "：")) else "; ") + found[at].text.rstrip(".。;；")
        end = found[at].end
        at += 1
    return sentences.Sentence(text, intro.start, end, intro.line), at


def _concerns_user(text: str, *, chinese: bool) -> bool:
    """Tell whether a machine's sentence is about the user, a recommendation, or something done or agreed."""
    if _TOLD_AGAIN.search(text) or (_OF_WORK.search(text) and not _TO_USER.search(text)):
        return False
    if chinese:
        return _ASSISTANT_ZH.search(text) is not None
    if _BOILERPLATE.match(text):
        return False
    return any(p.search(text) is not None for p in (_ASSISTANT_EN, _ADVICE_EN, _ASSISTANT_SELF))


def _groups(stated: list[_Statement]) -> Iterator[list[_Statement]]:
    """Join what depends on the statement before it, and short neighbours, so that each fact stands on its own."""
    group: list[_Statement] = []
    for statement in stated:
        size = sum(len(s.text) + 1 for s in group) + len(statement.text)
        depends = (_DEPENDS_ZH if statement.chinese else _DEPENDS_EN).match(statement.text) is not None
        if group and size <= (LONGEST if depends else JOINED):
            group.append(statement)
            continue
        if group:
            yield group
        group = [statement]
    if group:
        yield group


def _is_fragment(group: list[_Statement]) -> bool:
    """Tell whether a fact says too little without what went before."""
    text = " ".join(s.text for s in group)
    if len(group) == 1 and not group[0].chinese and talk_en.is_verbless(text):
        return True
    if sentences.length(text) < (1.5 if group[0].chinese else 3) and not any(c.isdigit() for c in text):
        return True
    depends = _DEPENDS_ZH if group[0].chinese else _DEPENDS_EN
    return (
        len(group) == 1 and sentences.length(text) < (3 if group[0].chinese else 5) and depends.match(text) is not None
    )


def _tell(group: list[_Statement], spans: list[list[dates.TimeSpan]], base: datetime, speaker: _Speaker) -> str:
    """Return the fact's text: dates resolved, the speaker in place of "I" or in front."""
    chinese = group[0].chinese
    label = speaker.label(chinese=chinese)
    texts = [_dated(statement, named, base) for statement, named in zip(group, spans, strict=True)]
    text = ("" if chinese else " ").join(texts)
    if (rules_zh if chinese else rules_en).is_standing(texts[0]):
        return f"{label}{'：' if chinese else ': '}{('' if chinese else ' ').join(texts)}"
    if chinese:
        told = voice.chinese(text, label) if "我" in texts[0] else None
        return told or f"{label}：{text}"
    if speaker.human and not any(voice.lacks_subject(t) for t in texts):
        if voice.FIRST_PERSON.search(texts[0]) and (told := voice.english(text, label)) is not None:
            return told
        if speaker.name is None and not voice.FIRST_PERSON.search(text) and _names_its_subject(text):
            return text
    return f"{label}: {text}"


def _names_its_subject(text: str) -> bool:
    return _THIRD_PERSON.match(text) is not None or _NAME_FIRST.match(text) is not None


def _dated(statement: _Statement, spans: list[dates.TimeSpan], base: datetime) -> str:
    """Return the statement with dates written out; something just done gets the day of speaking."""
    if spans or not _was_just_done(statement):
        return dates.annotate(statement.text, spans)
    body = statement.text.rstrip(".!。！ ")
    when = days.around(base.date(), 3)
    day = f"（{days.chinese(when)}）" if statement.chinese else f" ({days.english(when)})"
    return body + day + statement.text[len(body) :].strip()


def _statement(text: str, sentence: sentences.Sentence, *, chinese: bool) -> _Statement:
    """Return what `sentence` says as a sentence of its own: with a capital and a full stop."""
    text = text.strip()
    text = text[:1].upper() + text[1:]
    if not text.endswith((".", "!", "?", "。", "！", "？", "…", "]", ")", "）", "”", '"')):
        text = text.rstrip(",;:，；：—-– ") + ("。" if chinese else ".")
    return _Statement(text, sentence.start, sentence.end, chinese)


def _sources(group: list[_Statement], index: int, offset: int) -> tuple[Source, ...]:
    spans: list[list[int]] = []
    for s in group:
        if spans and s.start - spans[-1][1] <= 2:
            spans[-1][1] = max(spans[-1][1], s.end)
        else:
            spans.append([s.start, s.end])
    return tuple(Source(index, offset + a, offset + b) for a, b in spans)


def _last_question(text: str) -> str | None:
    """Return the question that a message ends with, if it is short enough to be quoted."""
    found = sentences.split(text[-600:])
    if not found or len(found[-1].text) > 140:
        return None
    last = found[-1].text
    if sentences.is_chinese(last):
        return last if rules_zh.is_question(last) and rules_zh.asks_about_you(last) else None
    return last if last.endswith("?") and rules_en.asks_about_you(last) else None
