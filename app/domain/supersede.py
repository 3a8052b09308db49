"""Which stored memories a new one replaces. The older one keeps its text; only its state says that it is no longer so.

A model says it with its facts. Without a model a narrow rule does: the same attribute of the same subject with another
value, in wordings that hardly ever mean anything else. Rather ten missed than one wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.domain import lexemes
from app.domain.remember import Draft
from app.model import Fact, Memory
from app.store import lifecycle, scopes
from app.store.db import Conn

LONGEST = 400  #: characters of a text that states a few things; longer ones state no single attribute
LOOKED_AT = 100  #: stored memories that one statement is compared with, newest first

# What makes a statement something else than "this is so now, and nothing else is".
_HEDGE = re.compile(
    r"\b(?:not|never|\w+n['’]t|maybe|perhaps|probably|possibly|might|may|could|would|should|will|if|used to|wants?|wanted|plans?|"
    r"hopes?|thinks?|dreams?|considers?|considering|considered|formerly|previously|once|was|were|had|until|temporarily|both|also|"
    r"too|another|second|sometimes|usually|part[- ]time|during|while|or|either|between)\b|\?|[?？不没未]|可能|如果|以前|曾|之前|想|打算|计划|"
    r"准备|希望|也|还|另|兼|临时|暂时|或|要(?!是)|会(?!计)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^(?:(?:actually|now|currently|update|correction|by the way|so|well|these days|as of \w+|today)[,:]?\s+)+",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]")
#: What may stand behind a value without being part of it.
_TAIL = re.compile(
    r"(?:\s+(?:now|currently|these days|already|again|instead|today|yesterday|recently|last \w+|this \w+|since \S+(?: \S+)?|"
    r"a \w+ ago|\w+ \w+ ago|in (?:19|20)\d\d|in [A-Z]\w+ (?:19|20)\d\d))+$"
)
#: What states something more behind a value.
_MORE = re.compile(r"\s+(?:as|with|where|because|which|who|from|near|for|after|since|when|so|but|and|in order)\b.*$")
#: How people say of themselves what the rules write in the third person.
_MYSELF = (
    (re.compile(r"^I['’]m\b"), "I am"), (re.compile(r"^I (?=(?:now |just |recently |currently )?(?:moved|relocated|turned)\b)"), "User "),
    (re.compile(r"^I((?: now| currently)?) (live|work|reside)\b"), r"User\1 \2s"), (re.compile(r"^I am\b"), "User is"),
    (re.compile(r"^[Mm]y (?=\w)"), "User's "), (re.compile(r"^我(?!们)"), "用户"),
)  # fmt: skip
_SAID = re.compile(r"([A-Z][\w.'’-]{0,30}|[\u4e00-\u9fff]{1,8})[:：]\s*(?=I\b|[Mm]y\b|我)")
_TAIL_ZH = re.compile(r"(?:了|的)$")
_SENTENCE = re.compile(r"(?<=[.!;])\s+|(?<=[。！；])|[，,;；]\s*(?:and\s+)?|\s+and\s+(?=[a-z]+s\b)")

_S = r"(?P<s>(?:[A-Z][\w.'’-]*|[Tt]he [\w-]+)(?: (?!(?:now|currently|just|recently|is|has|lives|works|moved)\b)[\w.'’-]+){0,3}?)"
_OF = r"(?P<s>(?:[A-Z][\w.-]*|[Tt]he [\w-]+)(?:(?:['’]s)? [\w.-]+){0,3}?)['’]s"
_NOW = r"(?: (?:now|currently|just|recently|has just|has recently))?"
_PROPER = r"(?P<v>[A-Z0-9][^,;()]{0,59}|the [A-Z][^,;()]{0,59})"
_ANY = r"(?P<v>[^,;()]{1,60})"
_ATTRIBUTE = (
    r"(?P<a>(?:(?:work|home|office|private|personal|business|middle|first|last|full|shoe|ring|cell|mobile|e-?mail|postal|zip|time|user|"
    r"phone)[ -]?){0,2}(?:phone|number|e-?mail|address|age|name|surname|nickname|birthday|boss|manager|landlord|employer|occupation|"
    r"nationality|postcode|code|size|weight|height|salary|username|pronouns|zone|timezone|dentist|therapist))"
)
_SZH = r"(?P<s>[\u4e00-\u9fffA-Za-z·]{1,12}?)"
_NOWZH = r"(?:现在|目前|如今|已经|刚刚?|最近|今年|这个月|上周|上个月|去年|昨天){0,2}"
_VZH = r"(?P<v>[^，。；、,;()（）\s]{1,30}|[A-Za-z0-9@+._ -]{1,60})"
_ATTRIBUTE_ZH = r"(?P<a>电话号码?|手机号码?|手机|电话|邮箱|邮件地址|电子邮箱|地址|住址|家庭住址|名字|姓名|年龄|生日|微信号?|老板|上司|经理|国籍|邮编|身高|体重|鞋码|昵称|职业)"


@dataclass(frozen=True, slots=True)
class _Rule:
    attribute: str  # empty: the one that the text names
    pattern: re.Pattern[str]
    words: str = ""  # every text that the rule reads holds one of these; empty: words of the attribute


_LIVES = "lives living moved relocated based resides 住在 居住 搬到 搬去 定居"
_WORKS = "works working employed joined 上班 工作 就职 任职 入职 跳槽"
_LIKES = "favorite favourite 喜欢 最爱"
_RULES = (
    _Rule("residence", re.compile(rf"{_S}{_NOW} (?:lives|resides|is(?: now| currently)? (?:living|based))(?: now| currently)? (?:in|at) {_PROPER}"), _LIVES),
    _Rule("residence", re.compile(rf"{_S}{_NOW} (?:(?:has )?(?:moved|relocated))(?: back| out)? to {_PROPER}"), _LIVES),
    _Rule("employer", re.compile(rf"{_S}{_NOW} (?:works|is(?: now| currently)? (?:working|employed)|started working)(?: now| currently)? (?:at|for|by) {_PROPER}"), _WORKS),
    _Rule("occupation", re.compile(rf"{_S}{_NOW} (?:works|is(?: now| currently)? working)(?: now| currently)? as (?:an? )?{_ANY}"), _WORKS),
    _Rule("age", re.compile(rf"{_S} is(?: now)? (?P<v>\d{{1,3}}) years old"), "years old turned 岁"),
    _Rule("age", re.compile(rf"{_S}{_NOW} turned (?P<v>\d{{1,3}})"), "years old turned 岁"),
    _Rule("", re.compile(rf"{_OF} (?:new |current )?favou?rite (?P<a>[\w -]{{2,30}}?) is(?: now)? {_ANY}"), _LIKES),
    _Rule("", re.compile(rf"{_OF} (?:new |current )?{_ATTRIBUTE} is(?: now)? {_ANY}")),
    _Rule("residence", re.compile(rf"{_SZH}{_NOWZH}(?:住在|居住在|搬到了?|搬去了?|搬家到了?|定居在?){_VZH}"), _LIVES),
    _Rule("employer", re.compile(rf"{_SZH}{_NOWZH}在{_VZH}(?:上班|工作)"), _WORKS),
    _Rule("employer", re.compile(rf"{_SZH}{_NOWZH}(?:就职于|任职于|入职了?|跳槽到了?|跳槽去了?){_VZH}"), _WORKS),
    _Rule("age", re.compile(rf"{_SZH}{_NOWZH}(?P<v>\d{{1,3}})岁"), "years old turned 岁"),
    _Rule("", re.compile(rf"{_SZH}最(?:喜欢|爱)的(?P<a>[\u4e00-\u9fff]{{1,8}}?)(?:现在)?(?:是|变成了?|换成了?){_VZH}"), _LIKES),
    _Rule("", re.compile(rf"{_SZH}的新?{_ATTRIBUTE_ZH}(?:现在)?(?:是|为|换成了?|改成了?|改为){_VZH}")),
)  # fmt: skip
#: Wordings of one attribute.
_SAME = {
    "phone": "phone", "phone number": "phone", "number": "number", "mobile": "phone", "mobile phone": "phone",
    "mobile number": "phone", "cell phone": "phone", "cell number": "phone", "mobile phone number": "phone",
    "cell phone number": "phone", "email": "email", "e-mail": "email", "email address": "email", "e-mail address": "email",
    "home address": "address", "电话": "phone", "电话号码": "phone", "电话号": "phone", "手机": "phone", "手机号": "phone",
    "手机号码": "phone", "邮箱": "email", "邮件地址": "email", "电子邮箱": "email", "地址": "address", "住址": "address",
    "家庭住址": "address", "名字": "name", "姓名": "name", "年龄": "age", "微信": "微信", "微信号": "微信", "full name": "name",
}  # fmt: skip

#: What a memory about such an attribute holds, in any wording.
_WORDS = {
    "phone": "phone mobile cell 电话 手机", "email": "email e-mail 邮箱 邮件", "address": "address 地址 住址",
    "name": "name called 名字 姓名", "age": "age years old turned 岁 年龄",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """An attribute of a subject, and its value."""

    subject: str  # folded
    attribute: str
    value: str  # folded
    terms: tuple[str, ...]  # index terms, of which a memory about the attribute holds at least one

    def contradicts(self, other: Claim) -> bool:
        """Whether both cannot be so now. A value that only says more or less of the same contradicts nothing."""
        if (self.subject, self.attribute) != (other.subject, other.attribute) or self.value == other.value:
            return False
        mine, theirs = (set(re.findall(r"[^\W_]+", value)) for value in (self.value, other.value))
        if mine <= theirs or theirs <= mine:
            return False
        # Chinese has no spaces to tell words by.
        inside = self.value in other.value or other.value in self.value
        return not inside or self.value.isascii()


def claims(text: str) -> list[Claim]:
    """Return what a text claims of attributes, statement by statement."""
    speaker, parts = _parts(text)
    return [found[0] for part in parts if (found := _claim(part, speaker)) is not None]


def sole_claim(text: str) -> Claim | None:
    """Return what a text claims if it states nothing else: only such a text can be replaced as a whole."""
    speaker, parts = _parts(text)
    found = _claim(parts[0], speaker) if len(parts) == 1 else None
    return found[0] if found is not None and found[1] else None


def _parts(text: str) -> tuple[str | None, list[str]]:
    """Return who says it, if the text says so, and its statements."""
    if len(text) > LONGEST:
        return None, []
    said = _SAID.match(text)
    rest = _BRACKETS.sub("", text[said.end() :] if said else text)
    return said[1] if said else None, [part for part in _SENTENCE.split(rest) if part and part.strip()]


def _claim(statement: str, speaker: str | None) -> tuple[Claim, bool] | None:
    """Return what a statement claims, and whether that is all that it states."""
    statement = _OPENING.sub("", statement.strip()).rstrip(" .!。！")
    for pattern, plain in _MYSELF:
        statement = pattern.sub(plain.replace("User", speaker or "User").replace("用户", speaker or "用户"), statement)
    if _HEDGE.search(statement):
        return None
    bare = _TAIL_ZH.sub("", _TAIL.sub("", statement))
    for rule in _RULES:
        match = rule.pattern.fullmatch(bare)
        if match is not None:
            named = rule.attribute or " ".join(match["a"].casefold().split()).replace("colour", "color")
            subject, value = _folded(match["s"]), _folded(_MORE.sub("", match["v"]))
            attribute = ("favourite " if rule.words == _LIKES else "") + _SAME.get(named, named)
            terms = tuple(lexemes.query(rule.words or _WORDS.get(attribute, named)))
            whole = _MORE.search(match["v"]) is None
            return (Claim(subject, attribute, value, terms), whole) if subject and value else None
    return None


def _folded(text: str) -> str:
    text = re.sub(r"^(?:the|a|an|his|her|their)\s+", "", text.strip().casefold().replace("’", "'"))
    return " ".join(text.split()).strip(" .'\"“”")


# Against what is stored


@dataclass(frozen=True, slots=True)
class Replacement:
    """A new statement and a stored memory that cannot both be so."""

    scope_id: int
    hash: str  # of the new statement's text, which is a memory of its scope after the add
    other: UUID


def by_model(facts: Sequence[Fact], found: Sequence[Draft]) -> list[Replacement]:
    """Return what the model said with its facts; `found`: their drafts."""
    return [
        Replacement(draft.scope_id, draft.hash, other) for draft in found for other in facts[draft.position].replaces
    ]


async def by_rule(conn: Conn, project_id: int, found: Sequence[Draft]) -> list[Replacement]:
    """Return what the rule finds, for statements of an add whose memories are stored by this transaction.

    Later statements of one add are among what is stored, so they replace earlier ones.
    """
    replacements = []
    for draft in found:
        for claim in claims(draft.text):
            stored = await lifecycle.active(conn, project_id, draft.scope_id, claim.terms, limit=LOOKED_AT)
            replacements += [
                Replacement(draft.scope_id, draft.hash, memory_id)
                for memory_id, text in stored
                if (other := sole_claim(text)) is not None and claim.contradicts(other)
            ]
    return replacements


async def apply(
    conn: Conn, project_id: int, replacements: Sequence[Replacement], stored: Sequence[Memory], *, said_at: datetime
) -> list[UUID]:
    """Mark what is replaced, in the transaction that stored the new memories; return the ids of those that were marked.

    Of two memories, the one that was said first is marked. A statement whose text is stored already, and was replaced in
    its time, is so again from `said_at` on.
    """
    if not replacements:
        return []
    await scopes.lock(conn, project_id, {item.scope_id for item in replacements})
    new = {memory.id for memory in stored}
    known = await lifecycle.of_hashes(conn, project_id, {(item.scope_id, item.hash) for item in replacements})
    fresh: list[tuple[UUID, UUID]] = []
    again: list[tuple[UUID, UUID]] = []
    for item in replacements:
        memory_id = known.get((item.scope_id, item.hash))
        if memory_id is not None:
            (fresh if memory_id in new else again).append((memory_id, item.other))
    marked = await lifecycle.restate(conn, project_id, again, said_at)
    return marked + await lifecycle.supersede(conn, project_id, fresh)
