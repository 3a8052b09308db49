"""Words that tell what a text is about, for the fifteen default categories, in English and Chinese.

English words stand for all their forms, since texts are compared by stems; in quotes of several words they are compared as
written. Chinese words are looked for as they are. A word behind ~ says little by itself: it counts half, and two of them
are needed. `misc` has no words: it is for what no other category wants.
"""

ENGLISH: dict[str, str] = {
    "personal_details": """
        birthday born birthplace nationality citizen citizenship hometown phone email ssn zodiac gender pronoun surname
        nickname resident immigrate immigrant native ~passport height ~weight ~address ~postcode ~zip dog cat puppy kitten
        ~pet ~apartment ~neighborhood 'years old' 'lives in' 'live in' 'living in' 'moved to' 'is called' 'name is'
        'named after' 'grew up' 'comes from' 'is from' 'relocated to' 'phone number' 'date of birth'
    """,
    "family": """
        mother mom mum mommy father dad daddy parent sister brother sibling son daughter child kid baby toddler wife husband
        spouse grandmother grandfather grandma grandpa granddaughter grandson grandparent aunt uncle cousin niece nephew family
        stepmother stepfather stepson pregnant twin fiance fiancee fiancé fiancée marriage married divorce divorced wedding
        newborn 'in laws' 'mother-in-law' 'father-in-law' ~relative ~adopt
    """,
    "professional_details": """
        job career company employer employee colleague coworker boss salary engineer nurse lawyer attorney accountant freelance
        freelancer startup promotion promote interview resume client internship intern workplace profession professional
        manager ceo cto architect consultant journalist electrician plumber scientist researcher professor teacher hire
        layoff degree university college phd thesis semester exam student major graduate mba business office shift
        payroll ~work ~works ~project ~deadline ~meeting ~conference ~team ~school ~study ~course ~class ~course
        'works at' 'works as' 'works for' 'working at' 'working for' 'working as' 'work at' 'work for' 'work as' 'day job'
    """,
    "sports": """
        football soccer basketball tennis baseball hockey cricket rugby volleyball badminton golf marathon triathlon gym workout
        fitness yoga pilates swim swimming cycling jogging jog ski skiing snowboard surf surfing climb climbing boulder boxing
        karate judo taekwondo wrestle wrestling gymnastics athlete athletics olympics league coach sport sports bicycle
        skateboard skating kayak rowing referee stadium tournament halfmarathon squash bowling fencing ~run ~running ~race
        ~match ~team ~champion ~championship ~train ~hike ~hiking ~bike '5k' '10k' 'ping pong' 'table tennis' 'half marathon'
    """,
    "travel": """
        trip travel traveler vacation holiday flight airport airline hotel hostel airbnb itinerary visa passport tourist tourism
        sightseeing cruise backpacking backpack beach luggage suitcase abroad overseas roadtrip resort safari journey booking
        ~visit ~visited ~fly ~flew ~flying ~tour ~train ~ticket ~camp ~island ~museum 'road trip' 'flew to' 'fly to' 'flying to'
        'trip to' 'layover' 'window seat' 'aisle seat'
    """,
    "food": """
        food eat ate cook cooking cuisine recipe restaurant dinner lunch breakfast brunch meal snack vegetarian vegan pescatarian
        coffee tea espresso latte pizza pasta sushi ramen noodle rice bread cake chocolate cheese cheesecake meat beef pork
        chicken fish seafood shrimp tofu fruit vegetable salad soup spicy peanut nut gluten lactose dairy milk egg wine beer
        cocktail whisky whiskey juice bake baking dessert cookie pie sandwich burger taco curry dish kitchen ingredient cafe
        banana apple mango strawberry tomato onion garlic mushroom cilantro halal kosher cereal oatmeal pancake ice-cream
        hungry ~taste ~drink ~allergic ~allergy ~diet 'ice cream'
    """,
    "music": """
        music song sing singer singing guitar piano violin cello drum drummer concert album jazz opera rap hiphop playlist choir
        spotify band orchestra symphony melody musician composer ukulele saxophone flute trumpet karaoke vinyl lyric
        classical-music chopin mozart beethoven bach ~rock ~festival ~lesson ~play 'hip hop' 'heavy metal' 'rock band'
    """,
    "health": """
        health healthy allergic allergy doctor physician hospital clinic medicine medication prescription diagnose diagnosis
        disease diabetes diabetic asthma pain injury surgery therapy therapist anxiety depression dentist vitamin insomnia
        symptom illness sick headache migraine vaccine vaccination cancer cholesterol arthritis flu fever cough antibiotic
        pill nutrition physiotherapy rehab tooth teeth concussion fracture stroke epilepsy anemia adhd autism intolerant
        intolerance inhaler insulin ~sleep ~diet ~stress ~exercise ~weight ~smoke ~smoking ~blood 'blood pressure'
        'mental health' 'heart attack' 'broke her' 'broke his' 'quit smoking'
    """,
    "technology": """
        computer laptop smartphone software programming programmer coding code developer app python javascript typescript rust
        java golang algorithm server database api linux ubuntu windows macbook macos iphone ipad android gadget robot robotics
        internet website github cloud docker kubernetes vr ai chatbot wifi router gpu cpu keyboard monitor printer smartwatch
        electronics tech technology technical startup-tech cybersecurity blockchain crypto vim emacs vscode sql postgresql
        frontend backend devops tablet drone ~program ~device ~tool ~screen 'machine learning' 'deep learning' '3d printer'
        'programming language' 'dark mode'
    """,
    "hobbies": """
        hobby painting paint painter draw drawing sketch photography photographer garden gardening knit knitting crochet reading
        chess puzzle collect collecting collector pottery ceramics crafts craft fishing camping boardgame dance dancing salsa
        woodworking sewing origami birdwatching birding calligraphy watercolor stargazing astronomy telescope lego model-trains
        hike hiking journaling scrapbook quilting whittling beekeeping aquarium stamp stamps ~read ~book ~novel ~write
        ~writing ~volunteer ~spare 'board game' 'board games' 'free time' 'spare time' 'book club'
    """,
    "fashion": """
        clothes clothing dress shoe sneaker jacket coat shirt tshirt jeans fashion jewelry jewellery necklace earring bracelet
        handbag makeup lipstick cosmetics perfume hat skirt suit boots heels scarf sweater hoodie outfit wardrobe tailor
        stylist hairstyle haircut tattoo sunglasses leggings socks trousers ~wear ~wears ~wearing ~style ~brand ~designer ~ring
        'shoe size' 't shirt'
    """,
    "entertainment": """
        movie film tv television netflix hbo hulu disney actor actress theatre theater cinema gaming videogame anime manga comedy
        podcast youtube youtuber streamer twitch documentary sitcom musical broadway playstation xbox nintendo zelda minecraft
        fortnite pokemon celebrity circus thriller horror ~series ~show ~episode ~season ~watch ~watched ~game ~games ~gamer
        ~concert ~festival ~novel 'video game' 'video games' 'stand up' 'sci fi' 'science fiction' 'tv show'
    """,
    "milestones": """
        graduated graduation wedding engaged engagement anniversary retire retired retirement milestone promoted award
        achievement ~won ~born ~finished ~completed ~first ~published ~launched ~founded 'got married' 'got engaged'
        'gave birth' 'was born' 'bought a house' 'bought a home' 'bought an apartment' 'first house' 'first child' 'new job'
        'got promoted' 'was promoted' 'passed the' 'got divorced' 'first marathon' 'became a' 'quit smoking' 'new house'
        'finished a marathon' 'ran a marathon' 'moved in together' 'started a company' 'founded a company'
    """,
    "user_preferences": """
        prefer preference favorite favourite dislike hate avoid enjoy fond rather loathe adore love like likes loves interest
        ~want ~wants 'would rather' 'cannot stand' "can't stand" "doesn't like" 'does not like' 'not a fan' 'fan of'
        'keen on' 'allergic to the idea' 'never wants' 'always wants' 'call me' 'to be called'
    """,
}

CHINESE: dict[str, str] = {
    "personal_details": """
        我叫 用户叫 名叫 名字 姓名 昵称 住在 住址 ~地址 电话 手机号 号码 邮箱 邮件地址 生日 出生 ~岁 老家 家乡 国籍 籍贯 身份证 搬到 搬家 搬去 身高 体重 星座
        属相 微信号 养了 小狗 小猫 一只猫 一只狗 宠物 邮编 来自 定居
    """,
    "family": """
        妈妈 爸爸 母亲 父亲 父母 妹妹 姐姐 哥哥 弟弟 儿子 女儿 孩子 宝宝 妻子 老婆 丈夫 老公 爱人 奶奶 爷爷 外婆 外公 姥姥 姥爷 阿姨 叔叔 舅舅 姑姑 表弟 表妹 表哥
        表姐 堂弟 堂妹 侄子 侄女 外甥 家人 亲戚 怀孕 结婚 离婚 婚礼 未婚妻 未婚夫 双胞胎 岳父 岳母 婆婆 公公 孙子 孙女 家庭
    """,
    "professional_details": """
        工作 上班 公司 职业 同事 老板 上司 领导 工资 薪水 工程师 程序员 护士 老师 教师 律师 会计 设计师 创业 升职 面试 简历 ~会议 客户 出差 大学 专业 毕业 硕士 博士
        实习 论文 考试 经理 加班 跳槽 入职 离职 辞职 裁员 研究员 学生 ~项目 ~学习 ~学校 ~办公室 任职 就职 做测试 做开发 医生职业 记者 公务员 产品经理 自由职业
    """,
    "sports": """
        足球 篮球 网球 羽毛球 乒乓球 排球 棒球 高尔夫 马拉松 跑步 慢跑 健身 瑜伽 游泳 骑行 骑自行车 滑雪 滑板 冲浪 攀岩 爬山 登山 拳击 跆拳道 武术 太极 体育 球队 ~比赛
        ~教练 ~锻炼 ~运动 夜跑 普拉提 徒步
    """,
    "travel": """
        旅行 旅游 机票 航班 飞机 机场 酒店 度假 签证 ~护照 行程 景点 出国 高铁票 火车票 民宿 自驾 海滩 海边 行李 游玩 ~玩了 ~去了 ~飞往 ~出差 露营 邮轮 靠窗 飞去
    """,
    "food": """
        吃 喝咖啡 咖啡 喝茶 奶茶 绿茶 红茶 做饭 做菜 烹饪 餐厅 饭店 饭馆 早餐 午餐 晚餐 早饭 午饭 晚饭 夜宵 素食 素食者 火锅 面条 米饭 米粉 饺子 包子 寿司 拉面 披萨 蛋糕 面包
        巧克力 牛肉 猪肉 鸡肉 羊肉 海鲜 鱼 虾 水果 蔬菜 沙拉 汤 辣 花生 坚果 牛奶 乳糖 鸡蛋 红酒 啤酒 白酒 果汁 甜点 甜品 香菜 零食 菜谱 食物 美食 川菜 粤菜 烧烤 豆腐
    """,
    "music": """
        音乐 歌 唱歌 歌手 吉他 钢琴 小提琴 大提琴 架子鼓 打鼓 演唱会 音乐会 专辑 爵士 摇滚 说唱 古典乐 乐队 合唱 古筝 二胡 笛子 乐器 作曲 肖邦 贝多芬 莫扎特 周杰伦 歌单
    """,
    "health": """
        健康 过敏 医生 医院 诊所 药 吃药 诊断 糖尿病 哮喘 疼 手术 治疗 心理咨询 焦虑 抑郁 牙医 看牙 维生素 失眠 症状 生病 感冒 发烧 咳嗽 头痛 偏头痛 疫苗 癌 高血压 血压 血糖
        骨折 受伤 体检 康复 近视 鼻炎 胃病 不耐受 ~睡眠 ~压力 ~减肥 戒烟 ~体重
    """,
    "technology": """
        电脑 笔记本电脑 手机软件 软件 编程 写代码 代码 程序员 应用程序 算法 服务器 数据库 人工智能 机器学习 深度学习 机器人 互联网 网站 云计算 苹果手机 安卓 显卡 键盘 路由器 平板 智能手表 无人机
        区块链 科技 ~系统 ~设备 Python Java Linux GitHub 大模型 开源 深色模式
    """,
    "hobbies": """
        爱好 业余 画画 绘画 素描 水彩 摄影 拍照 园艺 种花 编织 读书 看书 阅读 下棋 象棋 围棋 拼图 收藏 收集 集邮 陶艺 手工 钓鱼 露营 桌游 跳舞 舞蹈 木工 缝纫 折纸 观鸟 书法 观星 天文 徒步
        写作 ~小说 养鱼 乐高 志愿者
    """,
    "fashion": """
        衣服 服装 裙子 鞋 运动鞋 外套 大衣 衬衫 牛仔裤 时尚 首饰 项链 耳环 包包 化妆 口红 香水 帽子 西装 靴子 围巾 毛衣 卫衣 穿搭 发型 理发 纹身 墨镜 ~穿 ~品牌 汉服
    """,
    "entertainment": """
        电影 电视剧 电视 综艺 追剧 演员 影院 剧院 话剧 游戏 打游戏 动漫 动画片 漫画 喜剧 播客 纪录片 直播 抖音 哔哩哔哩 B站 脱口秀 相声 明星 奈飞 ~小说 ~演唱会 科幻 密室逃脱
    """,
    "milestones": """
        毕业了 毕业典礼 结婚了 订婚 婚礼 周年 退休 升职 获奖 得奖 出生了 生了 买了房 买房 第一次 完成了 里程碑 考上 拿到学位 创办 创立 ~赢了 ~通过了 领证
    """,
    "user_preferences": """
        喜欢 最爱 偏好 讨厌 不喜欢 更愿意 宁愿 宁可 爱吃 爱喝 爱看 爱听 热爱 钟爱 感兴趣 受不了 不想 希望被叫 ~习惯
    """,
}

#: What each default category is for, in a sentence: for a model, and for comparing a project's own categories with.
MEANINGS: dict[str, str] = {
    "personal_details": "who somebody is: name, age, birthday, contact details, where they live or come from, pets",
    "family": "relatives, partners, children, and what happens among them",
    "professional_details": "job, employer, colleagues, projects, career, education and studies",
    "sports": "sports played, trained for or followed; fitness",
    "travel": "trips past and planned, places visited, flights, hotels, how somebody travels",
    "food": "food and drink: tastes, diets, cooking, restaurants",
    "music": "music heard or played, artists, concerts, instruments",
    "health": "illnesses, allergies, medication, doctors, sleep, mental health",
    "technology": "devices, software, programming, the internet",
    "hobbies": "what somebody does for fun: crafts, reading, games, gardening, collecting",
    "fashion": "clothes, shoes, jewellery, style, looks",
    "entertainment": "films, series, video games, podcasts, shows, celebrities",
    "milestones": "events that mark a life: graduation, wedding, birth, promotion, first home",
    "user_preferences": "what somebody likes, dislikes or wants done in a certain way",
    "misc": "what fits no other category",
}

#: The same in Chinese, of those that a project's own categories are measured against.
MEANINGS_ZH: dict[str, str] = {
    "personal_details": "个人信息：姓名、年龄、生日、电话、住址、家乡、宠物",
    "family": "家人：父母、兄弟姐妹、配偶、孩子",
    "professional_details": "工作：公司、职业、同事、项目",
    "sports": "体育：打球、跑步、健身、比赛",
    "travel": "旅行：行程、机票、酒店、去过的地方",
    "food": "饮食：口味、做饭、餐厅、饮料",
    "music": "音乐：歌曲、乐器、演唱会、歌手",
    "health": "健康：疾病、过敏、医生、睡眠",
    "technology": "科技：电脑、手机、软件、编程",
    "hobbies": "爱好：手工、阅读、园艺、收藏",
    "fashion": "时尚：衣服、鞋子、首饰",
    "entertainment": "娱乐：电影、电视剧、游戏",
}

#: Plain statements from all over the place, in both languages.
REFERENCES: tuple[str, ...] = (
    "User lives in Oslo", "User's brother is called Peter", "User works at a bank", "User plays football on Saturdays",
    "User flew to Madrid last spring", "User likes fried rice", "User listens to Bach", "User has a bad knee",
    "User's laptop is slow", "User grows roses", "User wears size 42 shoes", "User watches crime series",
    "User finished school in 2010", "User prefers short answers", "User met a friend yesterday", "User is tired today",
    "The meeting is on Tuesday", "User bought a lamp", "用户住在广州", "用户的哥哥叫小刚", "用户在银行上班", "用户喜欢吃面条",
    "用户去过西班牙", "用户膝盖疼", "用户喜欢听古典乐", "用户昨天很累",
)  # fmt: skip
