"""Chinese names of people, places and brands. The dictionary's tagger finds many and calls many plain words names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import rjieba

_COMMON = frozenset(
    "高潮 高兴 明白 安静 安全 康复 文学 文明 文化 温暖 温馨 金黄 金融 和谐 平均 平安 平静 幸福 时间 全麦 双方 应该 施工 祝福 祝愿 宫保鸡 "
    "谢谢 荣幸 权衡 金额 金钱 黄金 黄色 白色 黑色 马上 高级 高中 高考 高手 方向 方便 方法 方案 方面 温度 温柔 华丽 华人 安排 安装 安心 "
    "成功 成本 成绩 成为 程序 程度 花园 花园里 花费 花生 水果 水平 牛奶 牛肉 鱼肉 夏天 秋天 冬天 元素 元旦 计划 计算 季节 关系 关注 "
    "古老 古典 古城 宝贵 宝宝 包括 包装 解决 解释 项目 蓝色 经验 经济 经理 连衣裙 连续 路线 路上 江湖 常常 常见 田园 石头 万一 容易 "
    "老师 老板 老家 老公 老婆 老人 老虎 小时 小说 小心 小姐 小孩 小狗 小猫 小组 小区 小学 小吃 阿姨 博客 新西兰语 索引 卫星 冰淇淋 "
    "城市 美丽 东西 深度 登山 山脉 山坡 雪山 海滩 海滨 湖泊 冰川 吉他 攀岩 长跑 太多 新鲜 青春 内省 上山 中断 日志 印本 加仑 非营利 国内 "
    "国家 公园 市场 地方 中心 北方 南方 东方 西方 西部 东部 南部 北部 滑雪 森林 沙滩 农村 乡村 山区 西式 中式 英语 汉语 法语 西餐 沙拉 "
    "西兰花 西红柿 毛血旺 巧克力 沙发 麦克风 音乐会 古典文学 科普 道德 友谊 拓宽 美味 卡片 聊天 家族 论文 老年 老鼠 老乡 老天 老本 老牌 老外 老伴 小米粥 小麦 小康 小费 小路 小雪 小白 小金 小黄 小龙 小方 小孔 范围 范围图".split()
)
_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭陆范汪廖石"
    "金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤温康施牛樊葛邢安齐伍庞颜庄聂章鲁岳翟申欧耿关焦"
    "柳甘祝包宁尚符舒阮纪梅童凌毕单季裴霍涂成苗谷盛曲冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶牟艾尤阳穆农司卓古吉缪简车项连芦麦褚娄窦"
    "戚岑党宫费卜冷晏席卫米柏宗桂全佟应臧闵苟邬边卞姬师仇栾隋商刁沙荣巫寇桑郎甄丛仲虞敖明池查麻苑迟邝云宣"
)
_SOUNDS = frozenset(  # characters that write foreign names
    "阿埃艾爱安昂奥巴白班邦保鲍贝本比彼伯勃博布查茨达大代丹道得德登迪蒂丁杜顿多恩尔法菲费芬佛弗夫福富盖甘冈戈格葛古圭哈海汉豪赫亨洪"
    "霍基吉加贾杰金卡凯坎康考柯科克肯库夸拉莱兰朗劳勒雷蕾里理丽利莉列林琳龙隆卢鲁伦罗洛马玛迈曼芒毛梅门蒙米密摩莫墨姆穆纳娜奈南内尼妮"
    "涅宁纽努诺欧帕派潘庞佩彭皮珀普其奇齐恰乔切琴丘热若撒萨塞桑瑟森沙莎山尚舍申圣施什史士舒斯丝司苏索塔泰坦汤唐陶特提廷图托瓦万威韦维"
    "魏温文翁沃乌武西希锡夏肖谢辛休逊雅亚延扬耶伊依因英雍尤于约宰赞泽扎詹朱兹佐"
)
_TWO_SURNAMES = frozenset("欧阳 司马 上官 诸葛 司徒 东方 独孤 南宫 夏侯 皇甫 尉迟 慕容 令狐 端木 公孙 轩辕".split())
_TITLES = frozenset("先生 女士 小姐 老师 教授 医生 大夫 主任 总 阿姨 叔叔 律师 师傅 同学 博士".split())
_NO_GIVEN = frozenset("p c u d r ul uj y f m q t".split())  # tags of words that are no part of a name
#: Brands and places that are made of common words, so that no tagger finds them.
_KNOWN = re.compile(
    "字节跳动|飞书|钉钉|微信|支付宝|淘宝|天猫|京东|美团|滴滴|抖音|快手|小红书|哔哩哔哩|知乎|微博|豆瓣|阿里云|腾讯云|华为云|阿里巴巴|腾讯|百度|拼多多|顺丰|"
    "星巴克|瑞幸|肯德基|麦当劳|必胜客|海底捞|喜茶|蜜雪冰城|华为|小米|比亚迪|蔚来|理想汽车|小鹏|特斯拉|联想|大疆|海尔|格力|美的|网易云音乐|网易|携程|飞猪|饿了么|"
    "高德地图|百度地图|印象笔记|迪士尼|宜家|优衣库|耐克|阿迪达斯|苹果公司|微软|谷歌|亚马逊|英伟达|三星|索尼|任天堂|丰田|本田|大众汽车|宝马|奔驰|奥迪|"
    "文心一言|通义千问|豆包大模型|得到App|喜马拉雅|王者荣耀|原神"
)
HAN = re.compile(r"[\u4e00-\u9fff]")
_CALLED = re.compile(
    r"(?:我叫|名叫|叫做|名字(?:叫|是)|叫|姓名[:：是])([\u4e00-\u9fff]{2,4}?)(?=[，。！？,.!?的在是和跟、；]|$)"
)
_ORGANISATION = re.compile(
    r"(?:在|叫|是|加入|入职|去|进)了?([\u4e00-\u9fff]{2,6}(?:公司|集团|大学|学院|医院|银行|科技|中学|小学|研究所|餐厅|咖啡馆|超市|幼儿园))"
)


def find(text: str) -> Iterator[tuple[int, str]]:
    """Yield the names in `text`, each with its place."""
    known = [(match.start(), match.group()) for match in _KNOWN.finditer(text)]
    yield from known
    covered = {place for start, word in known for place in range(start, start + len(word))}
    for start, word in _tagged(text):
        if start not in covered:
            yield start, word
    for pattern in (_CALLED, _ORGANISATION):
        for match in pattern.finditer(text):
            yield match.start(1), match.group(1)


def _tagged(text: str) -> Iterator[tuple[int, str]]:
    words = rjieba.tag(text)
    at, skip = 0, 0
    for number, (word, tag) in enumerate(words):
        start = text.find(word, at)
        at = start + len(word) if start >= 0 else at
        if skip:
            skip -= 1
            continue
        if not HAN.match(word):
            continue
        joined = _joined(words, number)
        if joined:
            skip = 1
            yield start, joined
        elif len(word) >= 2 and (_is_name(word, tag) or _is_titled(words, number)):
            yield start, word


def _joined(words: Sequence[tuple[str, str]], number: int) -> str | None:
    """Return the name that begins with this word and goes on in the next one, which the dictionary took apart."""
    if number + 1 >= len(words):
        return None
    (word, tag), (after, next_tag) = words[number], words[number + 1]
    if len(after) > 2 or not HAN.match(after):
        return None
    if word in ("小", "老", "阿") and len(after) == 1 and next_tag in ("nr", "nrt") and after in _SURNAMES:
        return word + after
    surname = word in _TWO_SURNAMES or (len(word) == 1 and word in _SURNAMES and tag in ("nr", "nrt"))
    if surname and (after in _TITLES or (next_tag not in _NO_GIVEN and word + after not in _COMMON)):
        return word + after
    return None


def _is_titled(words: Sequence[tuple[str, str]], number: int) -> bool:
    word, tag = words[number]
    return tag.startswith("nr") and number + 1 < len(words) and words[number + 1][0] in _TITLES and word not in _COMMON


def _is_name(word: str, tag: str) -> bool:
    """Tell whether a word is a name. The tagger calls many plain words names, so what names look like decides too."""
    if word in _COMMON:
        return False
    if len(word) == 2 and word[0] in "老小" and word[1] in _SURNAMES and tag in ("n", "nr", "nrt", "t", "x"):
        return True
    if tag == "x":  # no word of the dictionary
        return word[0] in _SURNAMES and 2 <= len(word) <= 3
    if tag in ("nr", "nrt", "nrfg"):
        native = (word[0] in _SURNAMES and len(word) <= 4) or (word[0] in "小阿老" and len(word) == 2)
        return native or all(c in _SOUNDS for c in word)
    return tag == "ns" or (tag in ("nt", "nz") and len(word) >= 3)
