"""English talk that states nothing: reactions, thanks, orders, the state of the task at hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import simplemma

from app.domain import sentences, voice

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
ORDER = re.compile(
    r"(?:please|pls|kindly)\b|[^.!?]{1,60},?\s(?:please|pls)\s?[.!]{0,3}$|let['’]s\b|(?:help|tell|give|show|send|remind|teach|let|get|find|walk|convince)\s(?:me|us|the\suser)\b|"
    r"(?:ignore|output|write|rewrite|draft|fix|translate|summari[sz]e|explain|generate|create|calculate|compute|convert|compare|"
    r"describe|suggest|recommend|analy[sz]e|provide|make|add|remove|delete|rephrase|proofread|refactor|implement|debug|search|"
    r"look\sup|check|print|return|repeat|continue|imagine|pretend|draw|sketch|sort|count|merge|commit|push|install|upload|download|act|answer|respond|reply|consider|choose|pick|brainstorm|"
    r"outline|design|organi[sz]e|schedule|cancel|set|turn|play|open|close|use|try|enjoy|tell|say|forget|keep|take|have|don['’]t|do|"
    r"be|go|come|stay|let|wish|look|see|wait|listen|stop|start|give|show|read|find|ask|call|email|order|book|plan|list|format)\s"
    r"(?=(?:me|us|a|an|the|my|this|that|these|those|some|all|any|it|them|him|her|your|our|to|for|in|on|at|up|out|out|like|as|"
    r"with|what|how|why|who|if|more|another|one|two|three|again|down|into|from|about|care|safe|yourself|everything|be|do|"
    r"give|worry|forget|hesitate|let|[A-Z\"'“`])\b|[\"'“`])|"
    r"(?:i|we)(?:['’]d|\swould)\s(?:like|love|appreciate)\s(?:you|it\sif\syou|your|some\s(?:help|advice|tips|suggestions)|"
    r"(?:to\s(?:know|hear|see|get|understand)))\b|i\s(?:want|need|expect)\syou\b|"
    r"i(?:['’]m|\sam|\swas)\s(?:just\s)?(?:wondering|curious)\b|(?:i\s)?(?:need|could\suse|want)\s(?:some\s|your\s|a\s)?"
    r"(?:help|advice|tips|suggestions|ideas|assistance|recommendations)\b|"
    r"looking\sforward\sto\s(?:hearing|your)\b|(?:keep|take)\s(?:up|it|care|going)\b|good\sluck\b|have\s(?:a|fun)\b",
    re.I,
)
META = re.compile(
    r"(?:that|this|it)\s(?:still\s)?(?:did\s?n['’]?o?t|does\s?n['’]?o?t|works?|worked|isn['’]t)\s?(?:work|help|right|correct|now|working)?\s?(?:[.!]{0,3}$|,\s(?:the\s)?same\s)|"
    r"(?:i['’]m\s)?(?:still\s)?(?:getting\s|got\s|seeing\s|have\s)?(?:the\s)?(?:same|another)\s(?:error|problem|issue|result)\b|"
    r"(?:try|do\sit|run\sit|say\sthat)\sagain\b|(?:you['’]re|you\sare)\s(?:right|wrong|welcome|awesome|amazing|the\sbest|so\s\w{1,15})\s?[.!]*$|"
    r"(?:here['’]?s|here\s(?:is|are)|this\sis)\s(?:my|the|some)\s(?:code|log|output|error|file|text|draft|data|trace)|"
    r"(?:see|as)\s(?:above|below|attached)|(?:the|your)\s(?:answer|output|response|code|result)\s(?:is|was|above)\b|"
    r"as\san\sai\b|i\s(?:don['’]t|do\snot)\s(?:understand|get)\s(?:your|this|that|it)\b|"
    r"(?:i\shope|hope)\s(?:this|that|it|you)\b|"
    r"i(?:['’]m|\sam)\s(?:glad|happy|so\sglad|so\shappy|sorry|here|excited)\s(?:to\s(?:hear|help|see)|for\syou|you|that\syou|about\sthat)\b|"
    r"(?:let|lemme)\s(?:me\s)?know\b|(?:can['’]t|cannot)\swait\sto\s(?:hear|see\s(?:it|you|what|how))\b|"
    r"(?:thanks|thank\syou|thx|cheers|many\sthanks|appreciate\sit|i\s(?:really\s)?appreciate\s(?:your|the|it|that))\b(?!.{0,80}\b(?:i|i['’]m|i['’]ve|my|we)\b)|"
    r"(?:good|great|nice|lovely|so\s(?:good|nice|great))\s(?:to|seeing|hearing|talking|chatting|catching)\b|"
    r"(?:so\s|really\s)?(?:glad|happy|sorry|proud)\s(?:to\s(?:hear|help|see)|you|that\syou|it\s(?:helped|worked)|about|for\syou|of\syou)\b|"
    r"(?:so|how|really|pretty|super)\s(?:cool|great|nice|awesome|amazing|good|sweet|inspiring|lovely|wonderful)\s(?:that|to|you|of)\b|"
    r"love\s(?:that|the|this|your|those|these|how)\s(?:\w+\s?){1,5}[!.]*$|(?:appreciate|loving)\s(?:it|you|your|that|the)\b|"
    r"your\s\w{3,14}\s(?:means?|really\smeans?)\s(?:a\slot|so\smuch|the\sworld|everything)\b|i(?:['’]m|\sam)\s(?:always\s|just\s)?(?:here|there)\s(?:for|to\s(?:support|help))\b|"
    r"any\s?time\syou\b|(?:ok|okay|sure|alright)[,.]?\s(?:i\s)?(?:will|['’]ll)\s(?:try|do|check|see)\b|(?:congrats|congratulations)\b|"
    r"(?:ok|okay|awesome|perfect|great|amazing|haha\w{0,6}|lol),?\s(?:thanks|thank\syou|thx|cheers)\b(?!.{0,80}\b(?:i|i['’]m|i['’]ve|my|we)\b)|"
    r"that['’]s\s(?:exactly|just|precisely|all)\s(?:what\s)?i\s(?:needed|wanted|want|need|meant|was|thought|had)\b|(?:never\s?mind|nvm|forget\sit)\b.{0,30}$|"
    r"sounds\slike\san?\s\w{2,12}\s?[.!]*$|all\s(?:good|set|done|clear)\b.{0,12}(?:$|,)|happy\s(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|birthday|holidays?|new\syear|weekend|easter|christmas)\b.{0,12}$|(?:oops|whoops|ugh|argh|damn)\b.{0,24}$|that['’]s\s(?:so|very|really|too)\s(?:kind|nice|sweet|generous|thoughtful|funny|bad|sad)\b|"
    r"that['’]s\s(?:such\s)?an?\s(?:shame|pity|bummer|relief|pleasure|surprise|lot|riot|deal|plan)\b(?!.{0,80}\b(?:i|i['’]m|i['’]ve|my|we)\b)|"
    r"good\s?night\b.{0,30}$|(?:i\s(?:really\s|do\s)?(?:like|love)\s(?:it|this|that)(?:\sone)?\s?[.!]{0,3}$|i\sowe\syou\b.{0,12}$)|(?:that|this|it)(?:\sreally|\sso)?\s(?:helped|helps)\b.{0,16}$|"
    r"(?:what|how)\s(?:an?\s)?[a-z]{3,14}(?:\s[a-z]{2,12}){0,3}\s?[!.]+$|(?:talk|see|catch|speak)\s(?:to\s|up\s)?(?:you\s)?(?:soon|later|then|tomorrow|tonight)\b",
    re.I,
)
REACTION = frozenset(
    "a about absolutely again agree agreed ah all alright always am amazing an and anyway are as aw aww awesome awful bad be "
    "beautiful best bet better brilliant but bye can can't care catch cheers come congrats cool could course cute day days deal "
    "definitely did do don't done enjoy even exactly excellent exciting fair fantastic fascinating feel few fine for forget "
    "friend fun funny genius get glad go goes going good goodbye gosh got great guess guys ha haha happy hard have hear hello "
    "hey hi him hmm hope how huge i i'll i'm idea impressive in incredible indeed inspiring interesting is isn't it it'll it's "
    "job just keep kidding kind know later like lol look looks lot lots love lovely luck makes man many matter maybe me mean "
    "meant mind more morning much my never next nice night no nope not now of oh ok okay omg on one oops ouch perfect please "
    "pleasure point power pretty problem proud question quite rad really relatable right rock sad same saying see seems sense "
    "she should shame so some sorry sound sounds soon spot star stuff stunning such super sure surprised sweet take talk "
    "terrific thank thanks that that'd that's the their them then there they thing things think thoughtful this those though "
    "time to today too totally touching tough tragic true truth understand up very wait was way welcome well what what's "
    "whatever will wish with without wonderful word work worries worry worth would wow yay yeah yep yes you you'll you're "
    "you've your awe incredible adorable gorgeous breathtaking delicious yummy hilarious meh grazie merci danke gracias obrigado "
    "obrigada arigato tack dziekuje efharisto kk nvm lgtm yw ty thx np".split()
)  # fmt: skip
_OPINION_OF_YOU = re.compile(
    r"(?:you(?:['’]re|['’]ve|['’]ll|['’]d)?|your|that|that['’](?:s|ll|d)|it['’]?s?|sounds?|looks?|seems?|so|such|this)\b",
    re.I,
)
_JUDGEMENTS = frozenset(
    "great awesome amazing cool nice lovely wonderful fantastic beautiful perfect incredible impressive inspiring sweet "
    "fun exciting tough delicious gorgeous adorable thoughtful stunning brilliant proud glad happy excellent terrific "
    "interesting good important helpful special cute yummy relaxing peaceful blast guts worth".split()
)
STATES_SELF = re.compile(r"\b(?:i|i['’](?:m|ve|ll|d)|my|me|we|we['’](?:re|ve|ll|d)|our|us|mine)\b", re.I)
_STATUS = re.compile(  # how the task at hand goes
    r"(?:(?:ok|okay|hmm|but|and|now|still|then)\s){0,2}(?:it['’]?s\s(?:still|now)\s\w{2,12}\s?[.!]*$|it\s(?:works|worked|fails|failed|crashes)\b|"
    r"(?:the|this|that|all|your)\s(?:(?:first|second|third|last|other|new|old|next|same)\s)?(?:page|tests?|button|build|script|link|code|file|"
    r"function|output|response|answer|version|one|ones|image|import|error|deploy\w{0,5}|loop|table|layout|query|command|request|test\ssuite)\b"
    r"[^.!?]{0,30}\b(?:fails?|failed|failing|passe[sd]|pass|works?|worked|loads?|crash\w{0,3}|broken|breaks?|doe?s\snothing|(?:doesn|didn|isn)['’]t|"
    r"(?:is|are|looks?|sounds?|seems?)\s(?:still|now|too|better|worse|empty|wrong|red|green|gone|good|fine|ok|right|broken))\b|"
    r"(?:still|now)\s(?:failing|broken|red|green|nothing|works?)\b)",
    re.I,
)
_STATUS_FOR_ME = re.compile(
    r"(?:(?:but|and|so)\s)?(?:now\s)?i(?:['’]m)?\s(?:still\s|now\s)?(?:get|getting|see|seeing|got)\s(?:an?|the|this|another|only)\s"
    r"(?:[\w-]{1,16}\s){0,3}(?:errors?|warnings?|\d{3}|exceptions?|messages?|page|crash)\b|nothing\s(?:happens|happened|works|changed)\b|works?\s(?:on\smy\smachine|now|fine|for\sme)\b",
    re.I,
)
_OBJECT = re.compile(
    r"[A-Za-z]{2,14}\s(?:it|them|him|her|me|us|this|that|these|those|the|a|an|my|your|our|each|every|all|any|some|more|only|"
    r"one|two|three|four|five|ten|[\"'“`]|everything|something|again|instead)(?![\w'’])",
    re.I,
)
#: Verbs that open a statement whose "I" is left out, or are nouns as often, or have the same form in the past.
_NO_ORDERS = frozenset(
    "love like hate need want hope miss prefer think guess bet work live sleep rent light plan cost rain snow study feel wish "
    "believe know have enjoy own mean put set cut hit hurt quit shut spread split read beat cast bid fit rid shed let saw".split()
)
_LASTS = re.compile(
    r"\b(?:he|she|they|his|hers?|their|him|them|who|always|never|every|each|usually|often|no\slonger|any\smore|anymore|allerg\w{1,4}|prefer\w{0,3}|"
    r"can['’]?t|cannot|must|weekdays?|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mum|mom|dad|wife|husband|son|daughter|"
    r"brother|sister|boss|client|customer|team|dog|cat|birthday|rent|budget|deadline)\b",
    re.I,
)
_POINTED_AT = re.compile(r"(?:it|this|that|these|those|them)\b", re.I)
#: Things that one works on together with a machine; what is said of them in passing is true for minutes.
THINGS = (
    r"(?:pages?|layout|colou?rs?|tests?|drafts?|versions?|outputs?|images?|pictures?|text|code|build|buttons?|tables?|charts?|plots?|fonts?|sizes?|"
    r"titles?|links?|files?|screens?|scripts?|functions?|suite|variables?|imports?|errors?|warnings?|responses?|answers?|results?|options?|ones?|"
    r"examples?|paragraphs?|sentences?|headings?|lines?|rows?|columns?|loops?|quer(?:y|ies)|commands?|requests?|modules?|class(?:es)?|branch(?:es)?|"
    r"commits?|diffs?|logs?|configs?|matches|screenshots?|endpoints?|linter|compiler|cursor|menus?|modal|dropdown)"
)
_OF_TASK = re.compile(
    rf"(?:(?:ok|okay|so|now|but|and|hmm|well)\s){{0,3}}(?:(?:it|that|this|these|those|still|nothing|same)\b|(?:the|this|that|these|those|all|no|another|my|your|first|second|last|new|old|other)\s"
    rf"(?:[\w-]{{2,14}}\s){{0,2}}{THINGS}\b|{THINGS}\s(?:\d{{1,5}}\s)?(?:is|are|was|looks?|works?|fails?)|[a-z]+s?\s(?:fine|ok|okay|good|bad|wrong|weird|off)\b)",
    re.I,
)
_PRAISE = re.compile(
    r"(?:(?:and|so|but|yep|yeah)\s)?(?:(?:you|your)\b(?:['’]\w{1,2})?(?!.{0,200}\b(?:I|my|me|our)\b)|we\s(?:got|can\sdo)\sthis\b|i['’]ll\skeep\sy(?:ou|a)\sposted\b|"
    r"(?:i\s|i['’]m\s|i\sam\s)?(?:really\s|so\s|just\s|always\s){0,2}(?:love|loving|respect|admire|appreciate|impressed|inspired|proud|rooting|cheering)\b"
    r"(?:\s(?:by|of|for|with|seeing|hearing|that|how)){0,3}\syou(?:r|['’]re)?\b(?!.{0,200}\b(?:my|me)\b))",
    re.I,
)
_AUXILIARIES = frozenset(
    "is are was were am be been being has have had do does did can could will would shall should may might must ain't "
    "isn't aren't wasn't weren't hasn't haven't hadn't don't doesn't didn't can't couldn't won't wouldn't shouldn't cannot".split()
)


def is_order(text: str) -> bool:
    """Tell whether an English sentence asks for something to be done."""
    if ORDER.match(text):
        return True
    first, _, rest = text.partition(" ")
    first = first.lower()
    if first in ("cut", "set", "put", "split", "let") and _POINTED_AT.match(rest):
        return True
    if first in _NO_ORDERS or first in voice.PAST_FORMS or not voice.is_verb(first):
        return False
    # A noun that opens a sentence is followed by a verb of its own: "Work starts at nine".
    clause = re.split(r"[,;.!?:]", rest, maxsplit=1)[0]
    return _OBJECT.match(text) is not None or (clause.strip() != "" and not has_verb(clause, finite=True))


def is_praise(text: str, names: Collection[str]) -> bool:
    """Tell whether a sentence only praises or cheers the one whom it is said to, and has no name or number besides."""
    if _PRAISE.match(text) is None:
        return False
    telling = re.findall(r"(?<=\s)[\"“\[]?(?!I\b)[A-Z\d][\w'’-]*", text)
    return all(word.strip('"“[').split("'")[0].split("’")[0].casefold() in names for word in telling)


def is_verbless(text: str) -> bool:
    """Tell whether a short sentence has no verb, no name and no number, so that it means nothing alone ("Into the sea.")."""
    words = [w.replace("’", "'") for w in _WORD.findall(text)]
    if len(words) > 7 or any(w[:1].isupper() or w[:1].isdigit() for w in words[1:]) or STATES_SELF.search(text):
        return False
    if _LASTS.search(text):
        return False
    # In another language every word would look like none.
    return not has_verb(text) and _is_english(words)


def is_passing(text: str) -> bool:
    """Tell whether a short remark to a machine is about no person, name, number or rule: "The layout looks off."."""
    words = _WORD.findall(text)
    if len(words) > 9 or STATES_SELF.search(text) or _LASTS.search(text) or not _is_english(words):
        return False
    return _OF_TASK.match(text) is not None and re.search(r"\s[A-Z\"'“]", text) is None


def _is_english(words: Sequence[str]) -> bool:
    known = sum(simplemma.is_known(word.lower(), lang="en") or "'" in word or "’" in word for word in words)
    return known >= len(words) - 1 and known > 0


def has_verb(text: str, *, finite: bool = False) -> bool:
    """Tell whether an English clause has a word that may be a verb; with `finite`, one that needs no other beside it."""
    return any(_may_be_verb(word.replace("’", "'").lower(), finite) for word in _WORD.findall(text))


def _may_be_verb(word: str, finite: bool) -> bool:
    if word in _AUXILIARIES or word in voice.PAST_FORMS or "'" in word:
        return True
    if len(word) > 4 and word.endswith("ed" if finite else ("ed", "ing")):
        return True
    return len(word) > 3 and word.endswith("s") and voice.is_verb(word.removesuffix("s"))


def is_reaction(text: str, names: Collection[str]) -> bool:
    """Tell whether a reply only reacts: yes, no, thanks."""
    words = [w.replace("’", "'").lower() for w in _WORD.findall(text)]
    return META.match(text) is not None or all(w in REACTION or w in names for w in words)


def is_talk(body: str, names: Collection[str]) -> bool:
    """Tell whether a sentence says nothing that lasts. `names` are those of the speakers, in lower case."""
    words = [w.replace("’", "'").lower() for w in _WORD.findall(body)]
    about_self = STATES_SELF.search(body) is not None
    words = [w for w in words if w.removesuffix("'s") not in names]
    if not words or (sentences.length(body) < 2 and not any(c.isdigit() for c in body)):
        return True
    if META.match(body) or _STATUS_FOR_ME.match(body) or (_STATUS.match(body) and not about_self):
        return True
    if len(words) <= 10 and all(w in REACTION for w in words):
        return True
    return (
        len(words) <= 9
        and not about_self
        and _OPINION_OF_YOU.match(body) is not None
        and not _JUDGEMENTS.isdisjoint(words)
    )
