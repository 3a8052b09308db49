"""What in a message was written by a machine or for one: code, logs, output of tools, prompts, memories told again.

None of it is a statement of a person. It is blanked out and not cut, so that what remains keeps its place in the message.
English and Chinese. Every pattern is bounded, so that no text makes it slow.
"""

from __future__ import annotations

import re

_FENCES = ("```", "~~~")

_LOG = re.compile(
    r"\s{0,12}(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d\b|[A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d:\d\d\s"
    r"|\[?(?:INFO|ERROR|WARN|WARNING|DEBUG|TRACE|FATAL|CRITICAL)\b[\]:\s]|(?:time|ts|level)=\S|\[\s{0,8}\d{1,9}\.\d{1,9}\]"
    r"|\d{1,3}(?:\.\d{1,3}){3}\s(?:-|\")|\[?(?:信息|警告|错误|调试|异常)\s?[\]:：]"
    r"|Traceback \(most recent|File \"|at [\w.$<>]{1,200}[ (]|[\w.]{1,80}(?:Error|Exception|Warning|异常)[:：(]\s?"
    r"|(?:panic|fatal|error|warning|stderr|stdout|make|bash|sh|zsh)(?:\[\w{1,20}\])?:\s|goroutine \d|exit status \d|Segmentation fault|npm ERR!"
    r"|[Ee]rror(?:\s[A-Z]{1,8}\d{1,6})?:\s|(?:FAILED|PASSED|ERROR)\s\S{1,80}::|[EWIDF]/\w{1,40}\s?\(|kernel:\s|E\s{2,8}\w|-{2,3}>\s|Step \d{1,3}/\d"
    r"|(?:Uncaught|Unhandled|Caused by|During handling)\b[^.!?]{0,60}(?:Error|Exception)|(?:Subject|Cc|Reply-To|Message-ID):\s|(?:From|To):\s[^\s]{0,60}@|Command exited|SQLSTATE|commit [0-9a-f]{7,40}$|Author: [^<]{1,60}<|Date:\s{2,4}\w|\d{1,6} packets\s|Exception in thread|[a-z][\w-]{0,12}:\s[^.!?]{0,60}\bnot found\b|[^，。！？\s]{0,8}(?:错误|异常|失败)[：:]"
    r"|[a-z][\w-]{1,12}\s-{1,2}[A-Za-z]|[?MADRCU]{1,2}\s{1,2}[\w./-]{1,80}\.\w{1,6}$|On branch\s|Your branch is\s|[\w./-]{1,120}\.[a-z]{1,6}:\d{1,6}(?::\d{1,6})?:?\s|Found \d{1,6} errors?\b|-->\s|\d{1,6}\s\|"
    r"|[$>|]\s|\|.{0,400}\|\s{0,4}$|[{}\[\]<][^\u4e00-\u9fff]{0,400}[{}\[\],>;]\s{0,4}$|[{}\[\]();]{1,8},?\s{0,4}$"
    r"|(?:npm|pip|git|sudo|docker|kubectl)\s\w{1,20}\s)"
)
_CODE = re.compile(
    r"\s{0,40}(?:[\w.\[\]\"'-]{1,60}\s?(?:[-+*/|&:]?=|:=)\s?\S|[\w.$]{1,80}\([^\n]{0,200}[)({;,]{1,4}\s{0,4}$|#include\b|@\w{1,40}\(|//|/\*"
    r"|(?:return|raise|throw|yield|await|import|export|package|using|break|continue|const|let|var)\b[^.!?。！？]{0,200}[({\[;'\"=)]\s{0,4}$"
    r"|(?:break|continue|pass)\s{0,4}$|with\s.{1,160}\sas\s\w{1,30}:\s{0,4}$|while\s.{1,160};\sdo\b|done\s<|for\s\w{1,30}(?:,\s\w{1,30})?\sin\s.{1,200}:\s{0,4}$|(?:if|while|elif)\b.{0,200}[=<>!()].{0,200}[:{]\s{0,4}$"
    r"|if\s?\([^()]{1,80}\)\s\S|(?:else|try|finally|do)\s?[:{]\s{0,4}$|(?:FROM|RUN|CMD|COPY|WORKDIR|ENTRYPOINT|EXPOSE|ENV)\s\S"
    r"|(?:CREATE|ALTER|DROP|TRUNCATE)\s(?:TABLE|INDEX|VIEW|DATABASE|ROLE|SCHEMA|FUNCTION)\b|\w{1,40}\s\w{1,20}\s(?:PRIMARY KEY|NOT NULL)\b"
    r"|[A-Z][A-Z0-9_]{2,40}=\S|export\s[A-Z_]{2,40}=|[.#]?[\w-]{1,40}(?::[\w-]{1,20})?\s?\{|(?:public|private|protected|static)\s\w"
    r"|[^.!?。！？]{1,160}[{}]\s{0,4}$|[\w\s?]{1,40}:\s?[\w<>\[\]| ]{1,30};\s{0,4}$|diff --git|index [0-9a-f]{6,}|@@\s|[+-]{3}\s\S|[d-][rwx-]{9}|total \d{1,9}$|[A-Z]{3,20}(?:;[^:\s]{0,60})?:[A-Z0-9]|BEGIN\s|\*{3}\s)"
)
_CODE_WORD = re.compile(
    r"\s{0,12}(?:def|class|import|from|return|const|let|var|function|func|public|private|SELECT|INSERT|UPDATE)\s"
    r"[^.!?。！？]{0,200}[({=;:]"
)
_COLUMNS = re.compile(r"(?:\S{1,60}(?: \S{1,60}){0,3}(?: {2,40}|\t)){2}\S")
_ROW = re.compile(
    r"[^\s,]{1,40}(?:(?:,[^\s,][^,]{0,39}){1,12}|(?:\t[^\t]{1,40}){1,12})$"
)  # a line of CSV: no space behind its commas
_SYMBOLS = re.compile(r"[{}\[\]<>=;()_\\|$&]")
_PAIR = re.compile(r"[ \t-]{0,16}[\"']?[A-Za-z_][\w.-]{0,40}[\"']?:(?:\s|$)")  # a key of YAML, in lower case
_VALUE = re.compile(
    r":\s{0,3}(?:[\"'\[{]|v?\d{1,4}\.\d{1,4}\.\d|true\b|false\b|null\b|\d{4}-\d\d-\d\dT|[\w.-]{1,40}:\w|$)|^\s|^-\s",
    re.I,
)
_PROSE = re.compile(r"[^\W\d_](?:[^\W_]|['’-])*(?:[ ,][ ]?[^\W_][^\s]{0,30}){2}")
_SELF = re.compile(r"(?:I|We|My|Our|i|we|my|our)\b")

_TAG = re.compile(r"\s{0,8}<([A-Za-z\u4e00-\u9fff][\w-]{0,40})(?:\s[^<>]{0,200})?>")
_CLOSING = re.compile(r"</([\w-]{1,41})>|\[(?:/|end\s(?:of\s)?)([^\[\]\n]{2,40})\]", re.I)
#: Tags of type, which stand inside sentences, and those that applications put around what a person said.
_KEPT_TAGS = frozenset(
    "a abbr b big br code del em font i ins kbd mark q s small span strong sub sup u user human message user_message "
    "user-message user_query user_input query question input prompt".split()
)
_BRACKET = re.compile(r"\s{0,8}\[([^\[\]\n]{2,40})\]\s{0,4}$")
_MEMORIES = re.compile(
    r"[#*\s]{0,8}(?:(?:here|these|below)\s(?:are|is)\s)?(?:(?:the|some|your|my|all|\w{3,12})\s){0,3}(?:memor(?:y|ies)(?!\scard)|facts\sabout\s(?:you|me|the\suser))"
    r"[^.!?]{0,60}[:：*]{0,3}\s{0,4}$|[#*\s]{0,8}[^，。！？\n]{0,12}记忆[^，。！？\n]{0,6}[:：*]{0,3}\s{0,4}$"
    r"|[#*\s]{0,8}(?:已知|关于)?(?:用户|您|你)的?(?:信息|画像|资料|背景)[:：*]{0,3}\s{0,4}$|[#*\s]{0,8}(?:context\s(?:from|about)\b.{0,40}|(?:here\sis\s)?what\s(?:i|you|we)\s(?:know|remember)\b[^.!?]{0,20}\sabout\s(?:you|the\suser|me)|(?:known\s)?(?:user|profile)\s(?:info|information|facts|profile|context)|the\sfollowing\s(?:memories|facts)\b.{0,80})[:：*]{0,3}\s{0,4}$",
    re.I,
)
_ITEM = re.compile(r"[ \t]{0,16}(?:[-*•·+]|\(?\d{1,3}[.)、])\s{0,8}\S")

_AUTOMATED = re.compile(
    r"\s{0,8}(?:\[[a-z][a-z _:-]{2,40}\]|\[(?:定时|系统|自动|心跳|提醒)[^\]\n]{0,60}\]|[⏰🔔📅⚠]|#{1,3}\s\S|cron(?:\sjob)?\b[^.!?\n]{0,24}[:：]|cron\sjob\s|reminder\striggered\b|定时任务"
    r"|(?:system(?:\s(?:event|message|note|prompt))?|automated(?:\smessage)?|scheduled\s\w{2,12}|系统消息|系统提示|系统通知|自动消息|心跳检测)\s?[:：]"
    r"|\[(?:cron|heartbeat|system|tool|session|scheduled|automated)[^\]\n]{0,60}\])",
    re.I,
)
_ORDER_OF_PROMPTS = re.compile(
    r"\byou\sare\s(?:now\s)?(?:(?:an?|the)\s|[A-Z]\w{1,20},\s)(?:[^\s.!?]{1,20}\s){0,6}(?:[^\s.!?]{1,20}-)?(?:assistants?|agent|bot|chatbot|model|expert|engineer|developer|"
    r"teacher|tutor|coach|analyst|writer|editor|translator|reviewer|specialist|consultant|AI)\b"
    r"|^you(?:['’]re|\sare)\s[A-Z]\w{1,20}(?:,|\sfor\b|\sfrom\b|\s[—–-])|\byour\s(?:job|task|role|goal)\sis\b|\bact\sas\san?\s|^#{2,3}\s?instructions?\b|你的任务是|扮演|\b(?:the|this)\sassistant\s(?:should|must|is|will|can)\b|助手(?:应|必须|需要)|^(?:below|here)\sis\san?\s[^.\n]{3,60}\.\s[A-Z]|^(?:下面|以下)是一[段篇份个]|"
    r"^(?:guidelines|rules|instructions|constraints|规则|要求|限制|说明)\s?[:：]|\b(?:task|job)\s\S{1,24}\s(?:completed|finished|failed|ran|started)\b|\bexit\scode\s\d|\bjob\sran\sat\b|退出码|任务(?:已|于)"
    r"|\b[A-Z]{3,12}\.md\b|\b(?:reply|respond|answer)\s(?:with\s)?[A-Z]{2,12}_[A-Z]{2,12}\b|\bsession\sstartup\b|\bknowledge\scutoff\b|\bsystem\sprompt\b"
    r"|\b(?:memory|pre-compaction)\sflush\b|\bthis\sis\sa\sreminder\sthat\b|\bsession\s(?:was\s)?started\b"
    r"|你(?:现在)?是(?:一(?:个|位|名))?[^。！？\n]{0,24}(?:助手|机器人|专家|老师|分析师|工程师|客服|顾问|模型|翻译|教练|作家)"
    r"|(?:请回复|请回答|回复)\s?[A-Z]{2,12}_[A-Z]{2,12}|启动流程|系统提示词",
    re.I,
)
_WORD_OF_PROMPTS = re.compile(
    r"\byour\s(?:task|role|job|goal|output|instructions)\b|\byou\s(?:must|should|do\snot|never|always|have\s(?:access|no)|will\sbe\sgiven|speak|escalate)\b"
    r"|\b(?:never|do\snot|don['’]t)\s(?:reveal|mention|disclose|invent|infer|use)\b|\btool\s(?:names|calls?|availability)\b|\bcurrent\stime:|\b(?:host|os|node|shell|model|workspace|channel):\s|\btoday['’]s\sdate\sis\b"
    r"|\b(?:every|each|all)\s(?:messages?|inputs?)\b|\bdo\snot\sanswer\b|\boutput\s(?:json|a\slist)\b|\bfollowing\stools\b|\bthe\suser['’]s\s(?:instructions|message|request)\b|\bprioriti[sz]e\b|\bcite\syour\b"
    r"|不要(?:透露|编造|讨论|假设)|以下工具|可用工具|始终(?:用|使用|保持)|你的(?:任务|职责|回答|输出)|^#{1,3}\s?(?:技能|限制|规则|任务|输出|角色|要求)|每次回答|当前时间",
    re.I | re.M,
)
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|m0|ghp|gho|ghs|glpat|xox[abp]|hf)[-_](?=[\w-]{0,60}\d)[\w-]{14,200}|\b(?-i:AIza|AKIA|ASIA)[\w-]{14,200}|\b(?-i:eyJ)[\w-]{8,400}\.[\w-]{4,400}"
    r"|-----(?:BEGIN|END)\s[A-Z ]{3,40}|(?:passwords?|passwd|passphrase|private\skey|secret\skey|api[\s_-]?key|access\stoken)(?:\s{0,2}[:=]\s{0,3}|\s(?:is|was)\s)(?=\S{0,60}[\d!@#$%^&*_])"
    r"|(?:密码|口令|密钥|私钥)\s?[:：=是为]\s{0,3}[A-Za-z0-9]"
    r"|\b(?:pw|pwd|pass|login|credentials?)\s?[:=]\s?\S|\b[A-Z_]{0,30}(?:KEY|SECRET|TOKEN|PASSWORD)\s?[:=]"
    r"|(?-i:\b(?=[A-Za-z0-9+/]{0,40}\d)(?=[A-Za-z0-9+/]{0,40}[a-z])(?=[A-Za-z0-9+/]{0,40}[A-Z])[A-Za-z0-9+/]{32,200})",
    re.I,
)
_TRACE = re.compile(  # what programs print and people hardly say
    r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}\b|(?<![\w:])(?:\.{0,2}/[\w.@+-]{1,60}){2,20}|\b\d\d:\d\d:\d\d\b|\b(?=[0-9a-f]{0,11}[a-f])(?=[0-9a-f]{0,11}\d)[0-9a-f]{12,64}\b|"
    r"[│█▏▎▍▌▋▊▉━═╭╰]|\b\w{1,60}\.(?:py|js|ts|go|rs|java|c|cpp|rb|sh|sql|json|ya?ml|toml):\d"
)
_PROMPT_WITHIN = 6000  #: characters in which a prompt shows itself


def prose(text: str) -> str:
    """Return `text`, of the same length, with what no person says blanked out."""
    lines = text.split("\n")
    gone = [False] * len(lines)
    _mark_fences(lines, gone)
    _mark_blocks(lines, gone)
    kinds = [not away and is_output(line) for line, away in zip(lines, gone, strict=True)]
    whole = _mostly(lines, gone, kinds)
    after = False  # a line that belongs to the output above it
    for at, line in enumerate(lines):
        if gone[at]:
            after = True
        elif kinds[at] or (line.strip() and (whole or (after and line[:1].isspace())) and not _is_prose(line)):
            gone[at] = after = True
        else:
            after = False
    return "\n".join(" " * len(line) if away else line for line, away in zip(lines, gone, strict=True))


def is_output(line: str) -> bool:
    """Tell whether a line is code or a line of a log or a table."""
    if _LOG.match(line) or _CODE.match(line) or (_COLUMNS.match(line) and not _is_prose(line)):
        return True
    size = len(line.strip())
    # A line that opens like code may go on in words ("SELECT … gives me nothing"); its signs tell.
    most = 0.06 if _CODE_WORD.match(line) else 0.16
    return size > 8 and len(_SYMBOLS.findall(line)) / size > most


def is_prompt(text: str) -> bool:
    """Tell whether a message instructs a machine: a system prompt, a task that a clock started, files of instructions."""
    head = text[:_PROMPT_WITHIN]
    if _AUTOMATED.match(head):
        return True
    if _ORDER_OF_PROMPTS.search(head) is None:
        return len({m.group().lower() for m in _WORD_OF_PROMPTS.finditer(head)}) >= 2
    return True


def has_secret(sentence: str) -> bool:
    """Tell whether a sentence tells a key, a token or a password, which no memory should."""
    return _SECRET.search(sentence) is not None


def has_trace(sentence: str) -> bool:
    """Tell whether a sentence has a path, an address of a machine, a clock's seconds: marks of what programs print."""
    return _TRACE.search(sentence) is not None


def _mark_fences(lines: list[str], gone: list[bool]) -> None:
    fenced = False
    for at, line in enumerate(lines):
        bare = line.strip()
        fence = bare.startswith(_FENCES)
        gone[at] = fence or fenced
        closed = bare.strip("`~").count("```") > 0 or (bare.endswith("```") and len(bare) > 6)
        if fence and not closed:
            fenced = not fenced


def _mark_blocks(lines: list[str], gone: list[bool]) -> None:
    """Mark what stands between tags, between "[Context]" and "[End of context]", and below a heading of memories."""
    # Where each closing mark stands last, so that a search for it costs nothing.
    ends = {(m[1] or m[2]).lower(): at for at, line in enumerate(lines) for m in _CLOSING.finditer(line)}
    at = 0
    while at < len(lines):
        end = at if gone[at] else _block_end(lines, at, ends)
        for inside in range(at, end):
            gone[inside] = True
        at = max(end, at + 1)


def _block_end(lines: list[str], at: int, ends: dict[str, int]) -> int:
    """Return the line behind the block that opens at line `at`; `at` itself where none opens."""
    line = lines[at]
    if (tag := _TAG.match(line)) and (name := tag.group(1).lower()) not in _KEPT_TAGS:
        last = ends.get(name, -1)
        return last + 1 if last >= at else at + 1
    if bracket := _BRACKET.match(line):
        last = ends.get(bracket.group(1).lower(), -1)
        return last + 1 if last >= at else at
    if _MEMORIES.match(line):
        end = at + 1
        while end < len(lines) and (_ITEM.match(lines[end]) or not lines[end].strip()):
            end += 1
        return end if end > at + 1 else at
    return at


def _mostly(lines: list[str], gone: list[bool], kinds: list[bool]) -> bool:
    """Tell whether most of what is left of a message is output of machines, so that its other lines are part of it."""
    left = [at for at, line in enumerate(lines) if line.strip() and not gone[at]]
    if len(left) < 2:
        return False
    pairs = [at for at in left if _PAIR.match(lines[at])]
    yaml = pairs if any(_VALUE.search(lines[at]) for at in pairs) else []
    rows = [at for at in left if _ROW.match(lines[at])]
    marked = {at for at in left if kinds[at]} | set(yaml if len(yaml) > 2 else ()) | set(rows if len(rows) > 2 else ())
    return len(marked) * 2 >= len(left)


def _is_prose(line: str) -> bool:
    """Tell whether a line reads like a sentence of a person."""
    bare = line.strip()
    if any("\u4e00" <= c <= "\u9fff" for c in bare[:40]):
        return bare.endswith(("。", "！", "？"))
    ends = bare.endswith((".", "!", "?")) or _SELF.match(bare) is not None
    return ends and _PROSE.match(bare) is not None
