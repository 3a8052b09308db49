"""What a Chinese sentence states: questions, requests, greetings and reactions fall away, facts inside them are kept."""

from __future__ import annotations

import re
from collections.abc import Collection

from app.domain import sentences

_LEAD = re.compile(
    r"(?:(?:你好|您好|嗨|哈喽|嘿|哇|哦|噢|啊|唉|嗯+|哈{2,20}|呵{2,20}|好的?呀?|好吧|是的?|对的?|对了|没错|不是|谢谢你?|多谢|其实|说实话|顺便说一下|"
    r"顺便提一下|另外|话说|早上好|晚上好|下午好|早安|晚安|对不起|不好意思|抱歉|当然|问题|等等|好了|太好了|太棒了)(?:啊|呀|哦|了|啦|呢)?[，,！!。：:、\s~～]+"
    r"|[哈呵嘿]{2,20}[，,！!。~～\s]{0,4}|(?:请|麻烦)?(?:你|您)?(?:帮我)?(?:记住|记一下|记下来?|记得|别忘了|不要忘记|注意|提醒一下)[，,：:\s]?(?=.*?[我他她咱]|.{6})"
    r"|(?:你知道吗|告诉你|跟你说|和你说)[，,：:\s]+)"
)
_ASKS = re.compile(
    r"[?？]|吗\s*$|^.{0,4}[呢么]\s*$|什么|怎么|怎样|如何|为什么|为何|(?:去|在|到|从)哪|哪[里儿个些家位种款天年本部]|谁|多少|几点|几个人\?|多久|多大|是不是|有没有|"
    r"能不能|可不可以|要不要|会不会|好不好|行不行|对不对|是否|推荐(?:一下|几|些|点|个|一)|有推荐|求推荐"
)
_OFFER = re.compile(
    r"需要(?:我|帮)|要(?:不要)?我|还有(?:什么|其他)|(?:可以|好|行|对|是)吗|好不好|[”」》\"]怎么样|今天.{0,4}怎么样|最近.{0,2}怎么样|帮(?:您|你)"
)
_REALLY_ASKS = re.compile(r"[?？]|吗\s*[。！!~～]*$")
_INDIRECT = re.compile(
    r"(?:无论|不管|不知道|没有?什么|什么都|谁都|哪里都|怎么都|多少都|不怎么|知道|明白|学会|讨论|研究|决定)"
)
_ORDERS = re.compile(
    r"(?:先|再|那就?|现在|接着|然后|直接|顺便|也|还是|重新|可以){0,2}(?:请|麻烦|劳驾|拜托|帮我|帮忙|给我|替我|能帮|可以帮|你能|你可以|您能|您可以|能否|能推荐|可以推荐|推荐|告诉我|教我|翻译|写一|写个|解释|总结|列出|生成|计算|"
    r"介绍一下|说说|讲讲|讲个|查一?下|查查|看看|帮|忽略|输出|继续|重新|试试|我(?:想|要)(?:请|让|问|知道|了解一下|向你|和你|跟你)|(?:来)?(?:跟|和|给|对)我(?:分享|说|讲|聊)|想问|请问|来一|换一|改一)"
)
_TASK = re.compile(  # for the one who is spoken to, and done with soon
    r"(?:先|再|那就?|现在|接着|然后|直接|顺便|也|还是|重新|可以){0,2}"
    r"(?!.{0,24}了(?:$|[，。！,]))(?:把.{1,20}(?:翻译|改|换|删|移|放|加|写|变|转|设|调|发|做成|合并|整理)|给.{1,15}(?:加|写|起|取|画|换|做|配)|换[一个成]|用一句话|"
    r"(?:再)?(?:跑|试|写|来|做|改)一?[次遍版]|重写|撤销|打开|关闭|关掉|部署|上线|运行|执行|删除|删掉|修改|改成|概括|缩短|精简|提交|重启|保存|检查|测试一下|"
    r"[念读讲唱说]给我|[\u4e00-\u9fff]{1,4}一下(?!子)|去掉|压缩|做成|比较(?:一下)?|举.{0,4}例|按.{1,8}排|加上|跳过|多[说写讲]|展开|去掉|压缩|做成|比较(?:一下)?|举.{0,4}例|按.{1,8}排|加上|跳过|多[说写讲]|展开|合并|考考|出.{1,3}道|来[个一两几点]|只(?:输出|回答)|用.{1,8}(?:列|写|说|画|展示)出来|列出来|语气|(?:更|再)?(?:正式|简短|详细|简单|轻松|口语化)一[点些]|别(?:改|动|急))"
)
_STANDING = re.compile(
    r"(?:请)?(?:以后|今后|从现在起|从今以后|每次|总是|永远|始终|一律)(?!.*[?？])|(?:请)?(?:不要|别)?(?:再)?叫我"
)
_TALK = frozenset(
    "你好 您好 嗨 哈喽 在吗 在的 谢谢 谢谢你 谢谢您 谢谢啦 多谢 感谢 非常感谢 不客气 不用谢 好 好的 好吧 好呀 好啊 好嘞 行 可以 嗯 嗯嗯 哦 噢 是 是的 对 对的 没错 再见 拜拜 晚安 早安 早上好 晚上好 下午好 没事 "
    "没事了 没关系 不错 很好 太好了 太棒了 真棒 真好 真不错 厉害 加油 恭喜 恭喜你 哈哈 呵呵 嘻嘻 辛苦了 明白 明白了 知道了 了解 了解了 收到 原来如此 有道理 同意 当然 当然可以 没问题 就这样 就这样吧 算了 "
    "随便 继续 然后呢 真的 真的吗 是吗 我知道了 我明白了 我懂了 我同意 说得对 你说得对 很高兴认识你 很高兴认识您 认识你很高兴 这样啊 那好吧 太可惜了 真可惜 好可惜 好羡慕 真羡慕 好厉害 不对 错了 还是不行 还是报错 祝你好运 "
    "祝你开心 下次见 回头见 慢走 保重 好好休息 注意安全 我也是 我也这么觉得 我也觉得 听起来不错 听上去不错 这么严重啊 不会吧 天哪 我的天 哇 唉 谢谢你的建议 谢谢你的推荐 等等 可以可以 学到了 原来是这样 发错了 厉害了 还行 还行吧 一般 一般般 不用 不用了 谢啦 都行 都可以 牛 完美 稍等 稍等一下 不行 哈哈不行 也行 挺好 很有用 有用 很有帮助 我会的 我会去看一看 我会去看看 我试试 我记住了".split()
)
_REACTS = re.compile(
    r"(?:这|那|你|您|听起来|听上去|看起来|真是|真|太|好|非常|挺|确实|的确)(?:也|都|可|就|真|的|是|很|太|非常|挺|这么|那么|说得|做得|个|主意|想法|建议|听起来|有点|得){0,6}"
    r"(?:棒|好笑|搞笑|好|不错|厉害|可爱|漂亮|美|有趣|有意思|可惜|难过|开心|高兴|辛苦|贴心|合理|对|有用|有帮助|感人|酷|赞|严重|期待|羡慕|吓人|危险|好听|好看|好吃)(?:了|啊|呀|呢|吧|哦|极了|的|啦)?$"
    r"|(?:祝|恭喜|希望)(?:你|您|你们|大家).{0,30}$|(?:谢谢|感谢|多谢)(?:你|您)?(?:的|为|对|这么|告诉|帮).{0,30}$"
    r"|(?:我们|咱们)?(?:下次|改天|回头|以后)(?:再)?(?:聊|见|说).{0,4}$|(?:说|讲)[的得].{0,3}(?:好|对|棒)$|我(?:很|非常|十分)?(?:感谢|感激|理解)(?:你|您)?.{0,16}$|今天的?聊天.{0,10}$|(?:还是|依然|仍然)?(?:不行|报错|没用|一样的错误|同样的错误)了?$|(?:如果|若)?(?:你|您)?(?:还)?有(?:任何|其他|什么)?(?:问题|需要|需求).{0,30}$|不客气.{0,30}$"
    r"|(?:作为|我是)(?:一个|一名|你的)?(?:AI|人工智能|语言模型|智能).{0,60}$|很高兴(?:能)?(?:认识|帮|见到|为).{0,20}$"
)
_PASSING = re.compile(  # what is true for this moment only: thanks, thinking, how the task at hand goes
    r"(?:但是?|不过|可是|而且|然后|就是|还是|那)?(?:笑死.{0,4}$|我(?:没|无|都没|完全没)(?:意见|所谓|问题|异议).{0,2}$|今天.{0,3}到这.{0,4}$|(?:太|真|好|非常|十分)?(?:感谢|谢谢).{0,8}$|我(?:很|挺|更|就)?喜欢(?:这|那)个?.{0,2}$|(?:这)?正是我(?:需要|想要|要)的$|.{0,4}(?:愉快|快乐|顺利)$|"
    r"(?:明天|后天|下次|回头|改天|晚点|待会儿?|一会儿?)(?:再)?(?:聊|见|说|联系).{0,3}$|(?:让|容)?我(?:先|再)?(?:想想|看看|试试|考虑一下|查查|想一想|看一下|研究一下|试一下).{0,3}$|"
    r"太(?:长|短|复杂|慢|快|大|小|多|少|贵|乱)了$|(?:现在|终于|这下)?(?:可以|好|行|能用|成功|没问题|通过)了$|(?:报错|错误|结果)(?:信息)?(?:还是|依旧|依然)?(?:一样|没变|相同)了?$|"
    r"(?:点|按|运行|试|跑|改)(?:击)?了?.{0,6}(?:没反应|没用|不行|失败|没变化)了?$|第[一二三四五六1-6]个(?:更|比较|最|还)?(?:好|合适|喜欢|不错|行).{0,3}$|"
    r"(?:第.{1,4}[行个]的?|这个|那个|所有)?(?:测试|构建|编译|页面|按钮|脚本|代码|链接|接口|程序|函数|部署|请求|图片|网页)(?!.{0,12}我).{0,10}(?:失败|报错|没反应|不行|打不开|能打开|打开了|崩溃|通过|挂了|卡住|出错|正常).{0,3}$)"
)
_LASTS = re.compile(
    r"[我咱俺他她您]|[小老阿][\u4e00-\u9fff](?:在|的|说|要|想|是|去|来)|[A-Z]|家|孩子|儿子|女儿|老婆|老公|妻子|丈夫|朋友|爸|妈|父|母|哥|姐|弟|妹|同事|老板|客户|公司|预算|生日|"
    r"不[能会吃喝是]|过敏|喜欢|讨厌|最爱|害怕|习惯|从[来不没]|一直|总是|经常|常常|每|以后|今后|一律|周末|星期|周|月底|年底|明天|昨天|去年|今年|明年|春天|夏天|秋天|冬天|叫|"
    r"猫|狗|车|房|店|学校|医院|邻居|[年月日号]"
)
_OF_TASK = re.compile(  # what one works on together with a machine
    r"(?:现在|这下|还是|又|但是?|就是|然后)?(?:这|那|它|能(?:启动|打开|运行|用|跑)|没有?(?:输出|反应|变化)|卡|打印|报|输出|启动|运行|点|显示|布局|颜色|页面|按钮|构建|编译|测试|代码|图|"
    r"字体|标题|表格|版本|初稿|第.{1,3}[个页行列段张]|桌面端|手机[上端]|网页|服务|接口|脚本|截图|结果|问题)"
)
_COUNTS = frozenset("0123456789一二三四五六七八九十百千万两半")
_PERFECT = re.compile(r"[\u4e00-\u9fff]了|[\u4e00-\u9fff]过(?!来|去)|不能|不会|不吃|不喝|没法|正在|打算|准备|已经")
_SPLIT = re.compile(r"[，,；;—]+|\s(?=[\u4e00-\u9fff])")
_IF = re.compile(r"(?:如果|要是|假如|假设|若|万一|除了|比如|例如|或者|还是|关于|对于|根据|像|在.{1,12}(?:方面|上|中)$)")
_SELF = re.compile(
    r"我|咱|俺|本人|他|她|它|公司|家里|孩子|儿子|女儿|老婆|老公|妻子|丈夫|女朋友|男朋友|爸|妈|父|母|朋友|同事|老板|预算|时间|今年|下周|下个月|明天|昨天|周[一二三四五六日末]"
)
_VERBAL = re.compile(
    r"[是有在了过要会想去来做吃喝住买卖养学用爱喜讨怕不没能可叫开到给让把被对比需打写看玩找换带生订定退带教当准计]"
)
_RELATIVE = re.compile(
    r"(?P<who>我(?:们|家|妈妈?|爸爸?|老婆|老公)?)(?P<when>(?:大?前天|昨天|今天|上(?:个)?(?:周|星期|月)[一二三四五六日末]?|去年|今年|最近|刚刚?|之前|前几天)?)"
    r"(?P<verb>(?:刚|才|新)?(?:搬[到去]|住在?|租在?|买了?|养|去过?|预?订了?|工作|上班|读|报名了?|参加了?))的(?:那[个家只部套]|这[个家只部套])?"
    r"(?P<what>[^，。？！?!的]{2,12}?)(?=附近|周边|旁边|一带|那边|有|怎么|该|能|适合|吗|需要|可以|$)"
)


def statements(text: str, names: Collection[str] = ()) -> list[str]:
    """Return what the sentence `text` states, in its own words; nothing for mere talk. `names` are those of the speakers."""
    body = _without_lead(text, names)
    size = sentences.length(body)
    if size < 1.5 or _is_talk(body) or (size < 3 and not (_SELF.search(body) or _VERBAL.search(body))):
        return []
    if is_standing(body):
        return [body]
    asks = is_question(body)
    if not asks and not _orders(body):
        return ["，".join(kept)] if (kept := _declared(body, whole=True)) else []
    return _inside(body)


def answer(text: str, names: Collection[str] = ()) -> list[str]:
    """Return `text`, the reply to a question, even where it is no sentence; nothing for yes, no and thanks."""
    body = _without_lead(text, names)
    talk = all(_is_talk(clause) for clause in _SPLIT.split(body))
    return [] if talk or is_question(body) or _orders(body) else [body]


def asks_about_you(question: str) -> bool:
    """Tell whether an answer to this question says something of the one who gives it; an offer's answer does not."""
    return _OFFER.search(question) is None and _ASKS.search(question.rstrip("？?")) is not None


def is_passing(text: str) -> bool:
    """Tell whether a short remark to a machine is about no person, name, number or habit: "布局有点歪。"."""
    if sentences.length(text) > 6 or _LASTS.search(text):
        return False
    return _OF_TASK.match(text) is not None or not any(c in _COUNTS for c in text)


def is_question(text: str) -> bool:
    """Tell whether a Chinese sentence asks."""
    if _REALLY_ASKS.search(text):
        return True
    last = _SPLIT.split(text.rstrip("。！!~～ "))[-1]
    return _ASKS.search(last) is not None and _INDIRECT.search(last) is None and not last.endswith("吧")


def is_standing(text: str) -> bool:
    """Tell whether a sentence says how the speaker wants to be treated from now on."""
    return _STANDING.match(text) is not None


def _orders(text: str) -> bool:
    return _ORDERS.match(text) is not None or _TASK.match(text) is not None


def _without_lead(text: str, names: Collection[str]) -> str:
    body = text.strip()
    for _ in range(4):
        match = _LEAD.match(body)
        shorter = body[match.end() :] if match else body
        called = re.match(r"[^，,！!\s]{1,8}(?=[，,！!])", shorter)
        if called and called.group().casefold() in names:
            shorter = shorter[called.end() + 1 :]
        if shorter == body:
            break
        body = shorter.strip()
    return body


def _is_talk(clause: str) -> bool:
    bare = clause.strip(" 。！!？?，,~～…、.")
    return not bare or bare in _TALK or any(p.match(bare) is not None for p in (_REACTS, _PASSING))


def _declared(body: str, *, whole: bool) -> list[str]:
    """Return the clauses of a declarative sentence without those that are talk or a request at its end."""
    clauses = [c.strip() for c in _SPLIT.split(body) if c.strip()]
    if whole and len(clauses) < 2:
        return [body]
    kept = [c for c in clauses if not _is_talk(c) and not _TASK.match(c)]
    return [body] if len(kept) == len(clauses) else kept


def _inside(body: str) -> list[str]:
    """Return the clauses of a question or request that state something."""
    if match := _RELATIVE.search(body):
        return [f"{match['who']}{match['when']}{match['verb']}{match['what']}"]
    kept: list[list[str]] = [[]]
    for clause in (c.strip(" 。！!？?~～") for c in _SPLIT.split(body)):
        if _is_statement(clause) or (kept[-1] and _goes_on(clause)):
            kept[-1].append(clause)
        elif kept[-1]:
            kept.append([])
    runs = ["，".join(run) for run in kept if run]
    return [r for r in runs if sentences.length(r) >= 2]


def _goes_on(clause: str) -> bool:
    """Tell whether a clause may belong to the statement before it."""
    if sentences.length(clause) < 1 or _is_talk(clause) or _IF.match(clause):
        return False
    return not _orders(clause) and _ASKS.search(clause) is None


def _is_statement(clause: str) -> bool:
    if sentences.length(clause) < 1.5 or not _goes_on(clause):
        return False
    if _STANDING.match(clause):
        return True
    if _PERFECT.search(clause) and not re.search(r"[你您这那]", clause):
        return True
    return _SELF.search(clause) is not None and (_VERBAL.search(clause) is not None or sentences.length(clause) >= 3)
