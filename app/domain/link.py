"""Named things in a text: people, places, works, products, identifiers. The same reading for memories and for queries."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import simplemma

from app.domain import names_zh, taggers, voice
from app.model import Entity

MOST = 32  #: entities of one text; the first ones are kept
READ_CHARS = 100_000  #: of one text; more would keep the interpreter to itself for too long
_LONGEST = 80  #: characters of a name

_IDENTIFIER = re.compile(
    r"(?<![\w@.])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"  # an address of mail
    r"|\bhttps?://[^\s<>\"'，。；）)]{1,200}"
    r"|(?<![\w.])(?:[A-Z]{1,8}[-_#]?\d{2,12}(?:[-_][A-Z0-9]{1,12}){0,3}|\d{1,6}[-_][A-Z][A-Z0-9]{0,10})(?![\w])"  # ORD-2231, QF1204
    r"|(?<![\w.])v?\d{1,4}(?:\.\d{1,5}){2,3}(?!\w|\.\w)"  # a version or an address of a host
    r"|(?<!\w)[@#][A-Za-z_][\w-]{1,38}"
    r"|#\d{3,12}\b"
)
_QUOTED = re.compile(
    r"[\"“]([^\"“”\n]{2,60})[\"”]|《([^《》\n]{1,60})》|「([^「」\n]{2,60})」|『([^『』\n]{2,60})』|(?<!\w)'([A-Z][^'\n]{2,50})'(?!\w)"
)
_L = r"A-Za-zÀ-ÖØ-öø-ÿĀ-žА-яЁё"  # letters of names; Han and kana have rules of their own
_U = r"A-ZÀ-ÖØ-ÞА-ЯЁ"
_NAME_WORD = (
    rf"(?:(?:[{_U}]|St|Dr|Mr|Mrs|Ms)\.(?=\s?[{_U}])|[{_L}](?:[{_L}\d&]|['’](?!s\b)(?=[{_L}])|-(?=[{_L}\d])){{0,40}})"
)
_RUN = re.compile(
    rf"(?<![{_L}\d'’.-])(?=[{_U}]|[a-z]{{1,3}}[A-Z])(?:{_NAME_WORD})"
    rf"(?:(?:['’]s)?[ ](?:(?:of[ ]the|of|de|la|von|van|der|du|and|&)[ ])?(?=[{_U}]){_NAME_WORD}"
    rf"|[ ]\d{{1,4}}(?![\w.,:%]|\s(?:years|days|weeks|months|hours|minutes|people|times))){{0,8}}"
)
_CAMEL = re.compile(r"[a-z]{1,10}[A-Z]\w{1,20}|[A-Z][a-z]{1,20}[A-Z]\w{0,20}")

_NEVER = frozenset(
    "i a an the and or but so if it he she they we you this that these those there here what when where who why how which "
    "my your his her our their its is are was were be am do does did have has had will would can could should may might must "
    "not no yes ok okay hi hello hey thanks thank please sorry well oh ah wow yeah yep also just then now today tomorrow "
    "yesterday tonight user assistant monday tuesday wednesday thursday friday saturday sunday january february march april "
    "june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu "
    "thur thurs fri sat sun am pm mr mrs ms dr prof sir madam mom mum dad grandma grandpa one two three first second next last "
    "api pdf url csv json html css sql ui ux ai pr id faq ap ar ci cd sre xml yaml sdk ide qa orm http https tcp ip dns ssl tls cpu gpu "
    "ram ssd usb wifi tv dvd atm gps pm hr hq kpi roi mvp eta ph ps fyi btw lol omg asap tbd etc vs eg ie in on at to of for from with by as up down out all some any both each every more "
    "most let lets don't can't i'm i've i'll i'd it's that's im english".split()
)
_GIVEN_NAMES = frozenset(  # first names that are words too
    "mark will rose grace hope faith joy frank bill rob bob pat sue jack drew chase dean grant amber jade ruby pearl lily daisy "
    "iris ivy violet olive hazel penny carol robin jay art gene guy max miles nick pierce ray rich rusty wade cliff clay brook "
    "dawn eve heather holly melody mercy misty sage sandy summer wendy aria sol dale glen lance peter victor christian "
    "basil ginger jasmine ray bob tom tim jim kim ken ben dan don ron sam ted meg mel lee jean jo".split()
)
_TITLES = re.compile(
    r"^(?:mr|mrs|ms|dr|prof|sir|the|my|our|his|her|their|its|this|that|a|an|and|hey|hi|dear)\.? ", re.I
)
_HAPPENS = frozenset(  # what opens a sentence with "'s" and is no name: times, and what is counted by no one
    "today yesterday tomorrow tonight year week month day morning evening night spring summer autumn fall winter season century nature "
    "life society god world humanity management everybody everyone somebody someone nobody anybody anyone people men women children kids "
    "mother father mum mom dad sister brother grandma grandpa".split()
)
_SAID = frozenset(
    "said told met wrote sat thought felt knew taught spoke heard chose sang went flew drove sent gave brought bought wore drank ate lent".split()
)  # done by people
_MANNER = re.compile(
    r"-(?:specific|style|based|like|native|only|wide|level|related|driven|first|ready|compatible|powered|inspired)$"
)
_ENDS_NAME = frozenset("will i may mar jan sun one two three first last second day".split())  # Mary I, Big Sun
_ROLES = re.compile(r"^(?:CEO|CFO|CTO|COO|VP|HR|PM|MD|PI) (?=[A-Z])")


def normal(name: str) -> str:
    """Return the form by which a name is the same thing: folded case, no possessive, no title, single spaces."""
    text = unicodedata.normalize("NFKC", name).replace("’", "'").strip(" \t\n.,;:!?'\"“”()[]《》「」")
    text = " ".join(text.split()).casefold().removesuffix("'s").removesuffix("'")
    return _TITLES.sub("", text)


def entities(text: str) -> tuple[Entity, ...]:
    """Return the named things of `text` in the order of their first mention, each once, at most `MOST`."""
    text = text[:READ_CHARS]
    found: dict[str, tuple[int, Entity]] = {}
    candidates = list(_candidates(text))
    for at, name, kind in (*candidates, *_also(text, candidates)):
        norm = normal(name)
        if not _is_sound(norm):
            continue
        if norm not in found or at < found[norm][0]:
            found[norm] = (at, Entity(name.strip(), norm, kind))
    ordered = [entity for _, entity in sorted(found.values(), key=lambda pair: pair[0])]
    return tuple(_without_parts(ordered))[:MOST]


def _candidates(text: str) -> Iterator[tuple[int, str, str]]:
    for match in _IDENTIFIER.finditer(text):
        yield match.start(), match.group().rstrip(".,"), "IDENTIFIER"
    for match in _QUOTED.finditer(text):
        words = next(g for g in match.groups() if g is not None)
        if (
            len(words.split()) <= 6
            and (text[match.start()] in "《「『'" or words[:1].isupper() or names_zh.HAN.search(words))
            and len(words) <= 40
        ):
            yield match.start(), words, "QUOTED"
    yield from _capitalised(text)
    if names_zh.HAN.search(text):
        yield from ((at, word, "PROPER") for at, word in names_zh.find(text))


def _also(text: str, found: Sequence[tuple[int, str, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield what the taggers of the `nlp` extra find where the rules have found nothing. They cut what rules keep whole."""
    taken = [(at, at + len(name)) for at, name, _ in found]
    chinese = names_zh.HAN.search(text) is not None
    for at, name in taggers.find(text, chinese=chinese):
        if not any(start < at + len(name) and at < end for start, end in taken) and (not chinese or not name.isascii()):
            yield at, name, "PROPER"


def _capitalised(text: str) -> Iterator[tuple[int, str, str]]:
    """Runs of capitalised words; a word that opens a sentence counts only if something shows that it is a name."""
    lower = frozenset(re.findall(r"(?<![\w'’-])[a-z]{2,20}\b", text))
    for match in _RUN.finditer(text):
        start, words = match.start(), match.group().split(" ")
        if _opens_sentence(text, start) and not names_zh.HAN.match(text[match.end() : match.end() + 2].lstrip()):
            while words and not _opens_as_name(words, lower, text[match.end() : match.end() + 24]):
                start += len(words[0]) + 1
                words = words[1:]
                if words and not _is_function_word(words[0]):
                    break
        while words and ((_is_function_word(words[0]) and words[0] != "Will") or words[0][0].isdigit()):
            start += len(words[0]) + 1
            words = words[1:]
        while words and words[-1].casefold() in _NEVER and words[-1].casefold() not in _ENDS_NAME:
            words = words[:-1]
        for offset, part in _parts(" ".join(words)):
            part = _MANNER.sub("", _ROLES.sub("", part))
            if part and (part == "Will" or part.casefold() not in _NEVER):  # opening a sentence it was cut off above
                yield start + offset, part, "PROPER"


def _parts(run: str) -> Iterator[tuple[int, str]]:
    """Divide "Ann and Bob", "Crestmoor's Dialogue Engine" and "Jo Vossen of Acme"; keep "Museum of Modern Art"."""
    at = 0
    for piece in re.split(r"(['’]s (?=[A-Z])| and (?=[A-Z]))", run):
        if not re.match(r"['’]s | and ", piece):
            whole, of, rest = piece.partition(" of ")
            if of and " " in whole and not _is_plain(whole.rsplit(" ", 1)[-1]):
                yield at, whole
                yield at + len(whole) + len(of), rest
            else:
                yield at, piece
        at += len(piece)


def _opens_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 6) : start].rstrip(" \t\"'“‘(*_-")
    return not before or before[-1] in ".!?。！？:：;；\n…—–" or text[start - 1 : start] == "\n"


def _is_function_word(word: str) -> bool:
    low = word.replace("’", "'").casefold().rstrip(".")
    return low in _NEVER or low.split("'")[0] in _NEVER


def _opens_as_name(words: list[str], lower: frozenset[str], after: str) -> bool:
    """Tell whether the first word of a sentence is (part of) a name, although every first word has a capital."""
    first = words[0].replace("’", "'").casefold()
    if _is_function_word(first):
        return False
    if first in _GIVEN_NAMES or not _is_plain(words[0]):
        return True
    if len(words) == 1 and re.match(r"['’]s [a-z]", after):
        return first not in _HAPPENS
    if first in lower or first.endswith("ly"):
        return False
    if len(words) > 1:  # "Native Species is …" is a title, "Met Caroline …" is not
        return _is_plain(words[1]) or not (
            voice.is_verb(first) or first.endswith(("ing", "ed")) or first in voice.PAST_FORMS
        )
    following = re.match(r" ([a-z]{3,15})\b", after)
    if following is None or first.endswith(("s", "ing", "ed")):
        return False
    word = following.group(1)
    return (
        word.endswith("ed")
        or word in _SAID
        or (
            word.endswith("s")
            and word not in ("is", "was", "has", "does")
            and voice.is_verb(simplemma.lemmatize(word, lang="en"))
        )
    )


@lru_cache(maxsize=8192)
def _is_plain(word: str) -> bool:
    """Tell whether the dictionary has this word, and not as a name alone."""
    low = word.casefold().split("'")[0].split("’")[0]
    if not low.isascii() or not low.isalpha() or word.isupper() or _CAMEL.match(word):
        return False
    if not simplemma.is_known(low, lang="en"):
        return False
    lemma = str(simplemma.lemmatize(word, lang="en"))
    return not lemma[:1].isupper() or str(simplemma.lemmatize(low, lang="en"))[:1].islower()


def _is_sound(norm: str) -> bool:
    if not 2 <= len(norm) <= _LONGEST or (norm in _NEVER and norm != "will"):
        return False
    return any(c.isalnum() for c in norm) and (not norm.isdigit() or len(norm) >= 5)


def _without_parts(found: list[Entity]) -> list[Entity]:
    """Drop what is only a piece of an identifier ("example" of a mail address), of a title or of a product's name."""
    whole = [e.norm for e in found if e.kind in ("IDENTIFIER", "QUOTED")]
    named = {word for e in found if e.kind == "PROPER" for word in e.norm.split()[1:]}
    return [
        e
        for e in found
        if (e.kind != "IDENTIFIER" or e.norm not in named) and not any(e.norm != w and e.norm in w for w in whole)
    ]
