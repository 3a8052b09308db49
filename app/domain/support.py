"""Whether a conversation says what a fact says. Pure; compares words, numbers and names, and understands nothing.

A model's fact is refused when it has a number or a name that stands nowhere in the conversation, when too few of its words
stand where it says that it comes from, or when it drops a "not". A true fact in words of the model's own is refused now and
then; a made-up one is stored rarely.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal

import simplemma

from app.domain import dates, dates_zh, lexemes, sentences

Reason = Literal["unsupported", "number", "name", "negation", "language", "order"]

SHARE = 0.4  #: of a fact's words that its messages have to have
SHORT_REPLY = 4  #: words; a message of so few ("Yes, two") is understood by the one before it
NEAR_DAYS = 1  #: a day that a relative date may be off, for time zones
_PREFIX = 4  # letters that make words of one family: Japan, Japanese

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_OTHER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_THOUSANDS = re.compile(r"(?<=\d)[,\u202f\u00a0 ](?=\d{3}(?!\d))")
_HAN_NUMBER = re.compile(r"[零〇一二两三四五六七八九十百]+")
_WORDS_OF_NUMBERS = {
    word: str(value)
    for value, words in {
        0: "zero no none", 1: "a an one first once single", 2: "two second twice both couple pair half", 3: "three third",
        4: "four fourth quarter", 5: "five fifth", 6: "six sixth", 7: "seven seventh", 8: "eight eighth", 9: "nine ninth",
        10: "ten tenth", 11: "eleven eleventh", 12: "twelve twelfth dozen noon midnight", 13: "thirteen", 14: "fourteen",
        15: "fifteen", 16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty", 30: "thirty",
        40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety", 100: "hundred", 1000: "thousand",
    }.items()
    for word in words.split()
}  # fmt: skip

#: Who speaks, as facts call them, and words that any retelling has. They prove nothing.
_FRAME = frozenset(
    "user assistant says said say mention mentioned states stated tell told speaker person someone something thing things "
    "currently recently also named called name".split()
)
_FRAME_HAN = frozenset("用户助手的了是在我你他她它们和与就都也很吗呢吧啊呀着过地得把被这那个有会要说称于对为并且其")
_GERMAN = frozenset(
    "der die das und ist hat ein eine einen nicht mit für auf zu im den dem von sich wurde wird".split()
)
_ENGLISH = frozenset(
    "the a an is are was were has have had of to in on at and or for with from by that this it not be been i my me you your "
    "his her their they he she we our will would can user user's but about as who what when".split()
)
_MONTHS = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday thursday "
    "friday saturday sunday jan feb mar apr jun jul aug sept sep oct nov dec mon tue wed thu fri sat sun spring summer autumn "
    "winter".split()
)
#: "Not", and what says it in other words.
_NO = re.compile(
    r"\b(?:not|no|never|none|nothing|nobody|neither|nor|without|cannot|hardly|\w+n['’]t|dont|cant|isnt|doesnt|stop\w*|quit\w*|"
    r"avoid\w*|refus\w+|reject\w*|declin\w+|dislik\w+|hat(?:e|es|ed|ing)|lacks?|lacking|lack\w*|free|allerg\w+|intoleran\w+|former\w*|"
    r"gave up|giv\w+ up|used to|unable|un\w{3,}|in(?:active|capable|complete)|only|instead|rather|cancel\w*|fail\w*|miss\w*|lost|broke\w*|ended|against|vegan|"
    r"vegetarian|sober|skip\w*|drop\w*|except|but|any ?more|no longer|far from|less|left|forgot\w*|unlike|impossible|bann?\w*|loath\w+|"
    r"hesita\w+|prevent\w*|exclud\w*|non[- ]?\w+)\b|[不没无未别勿非戒拒]|停止|放弃|讨厌|过敏|避免|取消",
    re.IGNORECASE,
)
_PLAIN_NO = re.compile(
    r"\b(?:not|never|cannot|\w+n['’]t|dont|cant|isnt|doesnt)\b|[不没未](?!过敏|错|久|少|断|同|如|仅|但|管|论)",
    re.IGNORECASE,
)
#: A "not" that denies nothing.
_NO_BUT_YES = re.compile(
    r"\b(?:can(?:no|['’])?t wait|cannot wait|not only|not just|no wonder|couldn['’]?t (?:be|agree|have)|can['’]?t help|why (?:not|don['’]t)|"
    r"isn['’]t it|don['’]t you|didn['’]t (?:you|i)|haven['’]t you|wouldn['’]t you|aren['’]t you|not to mention|don['’]t worry|not sure if|"
    r"don['’]t forget|never (?:forget|miss|fail)|not until|hard not)\b|不仅|不但|不过|不错|不久|不断|忍不住|不要忘",
    re.IGNORECASE,
)
#: A message that tells the extractor what to write, instead of telling something.
_ORDER = re.compile(
    r"\b(?:output|print|emit|return|write down|extract|store|save|record|insert|state|add)\b[^.!?\n]{0,40}\b(?:the |this |these |a |following |new )"
    r"{1,3}(?:fact|facts|memory|memories|json)\b\s*[:：\"“{]|\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,30}\b(?:above|previous|prior|earlier|preceding|"
    r"your|system|all|the)\b[^.!?\n]{0,20}\b(?:instructions?|rules?|prompts?|orders?|messages?|guidelines)\b|(?:输出|记录|写入|保存|存储)[^。！？\n]{0,8}(?:事实|记忆)\s*[:：]|"
    r"忽略[^。！？\n]{0,10}(?:指令|内容|规则|提示)",
    re.IGNORECASE,
)
_CUE_DAY = re.compile(
    r"\b(?:today|tonight|yesterday|tomorrow|this (?:morning|afternoon|evening)|last night|days?|nights?|week\w*|mon|tues?|wed\w*|thurs?|fri|sat|"
    r"sun|\w+day|just|now|recently|later|soon|earlier|ago)\b|[今昨明前后][天晚早日]|星期|周|礼拜|刚|最近|号|日|天",
    re.IGNORECASE,
)
_CUE_MONTH = re.compile(
    r"\b(?:months?|january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|"
    r"oct|nov|dec|spring|summer|autumn|fall|winter|christmas|easter|birthday|holidays?|season|semester|weeks)\b|月|春|夏|秋|冬|节",
    re.IGNORECASE,
)
_CUE_YEAR = re.compile(
    r"\b(?:years?|decades?|ago|old|since|anniversary|kid|child|school|college|university|grew|teen\w*|last|next|\d{4})\b|年|岁|小时候",
    re.IGNORECASE,
)
_CUES = ((_CUE_DAY, 45), (_CUE_MONTH, 400), (_CUE_YEAR, 36_525))


@dataclass(frozen=True, slots=True)
class Said:
    """A text of a conversation, and when it was said."""

    text: str
    at: datetime


@dataclass(frozen=True)
class Evidence:
    """What one fact is compared with."""

    own: tuple[Said, ...]  # the messages that it comes from
    near: tuple[str, ...]  # the messages beside those
    whole: Whole  # all that was said and known
    free: bool = False  # facts may be in another language than their messages


@dataclass(frozen=True)
class Whole:
    """Everything that a name or a number may come from; analysed once for all facts of a conversation."""

    texts: tuple[str, ...]
    words: frozenset[str] = field(init=False)
    stems: frozenset[str] = field(init=False)
    numbers: frozenset[str] = field(init=False)
    joined: str = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "words", frozenset().union(*(_words(text) for text in self.texts)) if self.texts else frozenset())
        put(self, "stems", frozenset(word[:_PREFIX] for word in self.words if len(word) >= _PREFIX))
        put(self, "numbers", frozenset().union(*(numbers(text) for text in self.texts)) if self.texts else frozenset())
        put(self, "joined", "\n".join(_folded(text) for text in self.texts))


def reason(fact: str, evidence: Evidence, *, english: bool = False) -> Reason | None:
    """Return why the fact is not to be believed; None: the conversation says it. `english`: facts are wanted in English."""
    own = [said.text for said in evidence.own]
    if any(_is_order(said.text, fact) for said in evidence.own):
        return "order"
    other = _other_language(fact, own)
    if english and (_is_other_script(fact) or _is_english(fact) is False):
        return "language"
    if other and not evidence.free and not english:
        return "language"
    if _strange_number(fact, evidence):
        return "number"
    if _strange_name(fact, evidence.whole):
        return "name"
    if other:
        return None  # its words cannot be compared
    if _lost_not(fact, own):
        return "negation"
    return None if _is_told(fact, own, evidence) else "unsupported"


def closeness(fact: str, text: str) -> float:
    """Return the share of the fact's words that stand in `text`, 0..1."""
    wanted = _content(fact)
    return _share(wanted, _content(text)) if wanted else 0.0


# Words


def _is_told(fact: str, own: Sequence[str], evidence: Evidence) -> bool:
    wanted = _content(fact)
    if not wanted:  # "User is an assistant": nothing but frame
        return any(_folded(fact) in _folded(text) for text in own)
    mine = frozenset().union(*map(_content, own)) if own else frozenset()
    beside = frozenset().union(*map(_content, evidence.near)) if evidence.near else frozenset()
    if not any(_known(word, mine) for word in wanted) and (len(mine) > SHORT_REPLY or not own):
        return False
    # A date that was worked out, and a name that a pronoun stood for, were looked at already.
    names = {word for word in _content(" ".join(_names(fact))) if word in _content(evidence.whole.joined)}
    counted = {word for word in wanted if word not in names and not word.isdigit()} or wanted
    return _share(counted, mine | beside) >= SHARE


def _share(wanted: Iterable[str], given: frozenset[str]) -> float:
    words = set(wanted)
    return sum(_known(word, given) for word in words) / len(words)


def _known(word: str, given: frozenset[str]) -> bool:
    if word in given:
        return True
    if len(word) < _PREFIX or not word.isalpha() or _HAN.match(word):
        return False
    return word[:_PREFIX] in _beginnings(given)


@lru_cache(maxsize=256)
def _beginnings(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word[:_PREFIX] for word in words if len(word) >= _PREFIX)


@lru_cache(maxsize=512)
def _content(text: str) -> frozenset[str]:
    """Return the telling words of a text: stems, and single characters where there are no spaces."""
    han = {char for char in unicodedata.normalize("NFKC", text) if _HAN.match(char)} - _FRAME_HAN
    terms = {term for term in lexemes.analyse(_HAN.sub(" ", text)) if term not in _FRAME}
    terms = {part for term in terms for part in ([term] if term.isalnum() else []) if part not in _MONTHS}
    return frozenset(han | terms)


@lru_cache(maxsize=512)
def _words(text: str) -> frozenset[str]:
    return frozenset(part for word in _WORD.findall(_folded(text)) for part in re.split(r"['’]", word))


def _folded(text: str) -> str:
    bare = unicodedata.normalize("NFKD", text).casefold()
    return "".join(char for char in bare if not unicodedata.combining(char))


# Language


def _other_language(fact: str, own: Sequence[str]) -> bool:
    """Tell whether a fact is in another script, or in English where its messages are not, or the other way round."""
    text = " ".join(own)
    if not _LATIN.search(fact) and not _OTHER.search(fact):
        return False
    if _is_other_script(fact) != _is_other_script(text):
        # "用户喜欢 Rust" of "I love Rust" is another language, a name in the other script is not.
        return bool(_WORD.search(text))
    one, other = _is_english(fact), _is_english(text)
    return one is not None and other is not None and one != other


def _is_other_script(text: str) -> bool:
    other = sum(2 if _HAN.match(char) else 1 for char in _OTHER.findall(text))
    return other > len(_LATIN.findall(text)) / 2


def _is_english(text: str) -> bool | None:
    """Return whether the words of a text are English ones; None: there are too few, or some are."""
    words = [word for word in _WORD.findall(text.casefold()) if len(word) > 1]
    if len(words) < 5:
        return None
    share = sum(word in _ENGLISH or simplemma.is_known(word, lang="en") for word in words) / len(words)
    return True if share >= 0.7 else False if share < 0.4 else None


# Numbers and dates


@lru_cache(maxsize=512)
def numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text, also those in words, and the parts of dates, times and identifiers."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))
    found = {_bare(number) for number in _NUMBER.findall(plain)}
    found |= {_bare(part) for number in _NUMBER.findall(plain) for part in re.split(r"[.,:]", number)}
    found |= {_WORDS_OF_NUMBERS[w] for w in re.findall(r"[a-z]+", plain.casefold()) if w in _WORDS_OF_NUMBERS}
    for tens, ones in re.findall(r"\b([a-z]+ty)[- ]([a-z]+)\b", plain.casefold()):
        if tens in _WORDS_OF_NUMBERS and len(_WORDS_OF_NUMBERS.get(ones, "10")) == 1:
            found.add(str(int(_WORDS_OF_NUMBERS[tens]) + int(_WORDS_OF_NUMBERS[ones])))
    for run in _HAN_NUMBER.findall(plain):
        found |= {str(dates_zh.number(char)) for char in run if char in "一二两三四五六七八九十"}
        if re.fullmatch(r"[一二两三四五六七八九]?十[一二三四五六七八九]?", run):
            found.add(str(dates_zh.number(run)))
    return frozenset(found)


def _bare(number: str) -> str:
    return number.lstrip("0") or "0"


def _strange_number(fact: str, evidence: Evidence) -> bool:
    """Tell whether a number of the fact stands nowhere in the conversation, and in no date that can be worked out from it."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", fact))
    first = evidence.own[0].at if evidence.own else None
    spans = dates.find(plain, base=first) if first else []
    for match in _NUMBER.finditer(plain):
        if _bare(match[0]) in evidence.whole.numbers or _is_clock(match[0], evidence.whole.numbers):
            continue
        around = [span for span in spans if span.start <= match.start() and match.end() <= span.end]
        if not any(is_dated(span.from_, span.to, evidence) for span in around):
            return True
    return False


def _is_clock(number: str, known: frozenset[str]) -> bool:
    """Tell whether a time of the day was said, by the other clock or without its minutes: 15:00 of "3 pm"."""
    match = re.fullmatch(r"(\d{1,2})(?::(\d\d))?", number)
    if match is None or (match[2] not in (None, "00") and _bare(match[2]) not in known):
        return False
    hour = int(match[1])
    return match[2] is not None and not known.isdisjoint({str(hour), str(hour % 12), str(hour % 12 + 12)})


def is_dated(first: datetime, end: datetime, evidence: Evidence) -> bool:
    """Tell whether a time, up to `end` exclusive, may follow from when the messages were said and what they say of times."""
    for said in evidence.own:
        if first - timedelta(days=NEAR_DAYS) <= said.at < end + timedelta(days=NEAR_DAYS):
            return True
        told = [said.text, *evidence.near]
        days = min(abs((first - said.at).days), abs((end - said.at).days))
        if any(days <= within and any(cue.search(text) for text in told) for cue, within in _CUES):
            return True
        if str(first.year) in evidence.whole.numbers and str(first.day) in evidence.whole.numbers:
            return True
    return False


# Names


def _strange_name(fact: str, whole: Whole) -> bool:
    words = _WORD.findall(fact.casefold())
    if sum(word in _GERMAN for word in words) > sum(word in _ENGLISH for word in words):
        return False  # every noun has a capital there
    return any(not _is_known_name(name, whole) for name in _names(fact))


def _names(text: str) -> list[str]:
    """Return the words of a text that are written as names are."""
    found = []
    for match in _WORD.finditer(text):
        word = re.sub(r"['’]s?$", "", match[0])
        before = text[: match.start()].rstrip(" \"'“‘(*_-")
        opens = not before or before[-1] in ".!?:;\n。！？：；"
        if not word[:1].isupper() or word.casefold() in _FRAME | _ENGLISH | _MONTHS:
            continue
        # At the start of a sentence every word has a capital; one that owns something is a name, or a known noun.
        known = not word[1:].islower() or simplemma.is_known(word.casefold(), lang="en")
        if opens and known and word == match[0]:
            continue
        found.append(word)
    return found


def _is_known_name(name: str, whole: Whole) -> bool:
    folded = _folded(name)
    if folded in whole.words or folded in whole.joined:
        return True
    if len(folded) > _PREFIX and folded[:_PREFIX] in whole.stems:
        return True
    # A common word with a capital is emphasis or a title's: the share of words judges it.
    return simplemma.is_known(folded, lang="en") and not simplemma.is_known(name, lang="en")


# Negation and orders


def _lost_not(fact: str, own: Sequence[str]) -> bool:
    """Tell whether exactly one of fact and message denies what both speak of."""
    said = " ".join(own)
    if _NO.search(fact):
        return (
            _PLAIN_NO.search(fact) is not None and _NO.search(said) is None and not said.rstrip().endswith(("?", "？"))
        )
    plain = _NO_BUT_YES.sub(" ", said)
    wanted = _content(fact)
    sentences_ = [sentence.text for sentence in sentences.split(plain)] or [plain]
    # Where another sentence of the message tells it without a "not", there is nothing that the fact dropped.
    if any(_share(wanted, _content(s)) >= SHARE and not _NO.search(s) for s in sentences_ if wanted):
        return False
    denied: set[str] = set()
    for match in _PLAIN_NO.finditer(plain):
        denied |= set(list(_ordered(plain[match.end() : match.end() + 60]))[:3])
    return bool(denied & wanted)


def _ordered(text: str) -> Iterable[str]:
    clause = re.split(r"[,.;!?，。；！？\n]|\b(?:but|because|so|and|although|since)\b|但|因为|所以", text, maxsplit=1)[
        0
    ]
    han = [char for char in clause if _HAN.match(char) and char not in _FRAME_HAN]
    return han or [term for term in lexemes.analyse(clause) if term not in _FRAME]


def _is_order(text: str, fact: str) -> bool:
    """Tell whether a fact comes from a sentence that orders it to be written."""
    if not _ORDER.search(text):
        return False
    told = [sentence for sentence in re.split(r"(?<=[.!?。！？\n])\s*", text) if sentence.strip()]
    best = max(told, key=lambda sentence: closeness(fact, sentence), default="")
    at = told.index(best) if best else 0
    return any(_ORDER.search(sentence) for sentence in told[max(0, at - 1) : at + 1])
