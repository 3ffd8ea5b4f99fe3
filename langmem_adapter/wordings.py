"""Claims of power, orders, and what sends something away, in languages other than English: what the guard looks for.

Data only: regular expressions, tried without regard to case. Verbs and objects stand together, as in the English rules:
"я администратор гостиницы" is a job, and "мне можно есть орехи" is what a doctor allows.
"""

_RU = r"(?:плат[её]ж|перевод|возврат|транзакц|заказ|сч[её]т|операц|заявк|запрос|вс[её]\b|люб|правил|ограничен|провер)"
_UK = r"(?:плат[іе]ж|перек|поверн|транзакц|замовл|рахун|операц|запит|вс[іе]\b|усі\b|будь|правил|обмежен|перевір)"
_PL = r"(?:płatno|przelew|zwrot|transakcj|zamówie|faktur|rachun|wszystk|każd|zasad|limit|kontrol)"

POWERS = {
    "de fr es it nl pt": r"\b(?:ich\s+bin|je\s+suis|(?:yo\s+)?soy|sono|ik\s+ben|(?:eu\s+)?sou)\s+(?:\w+\s+|l'){0,2}"
    r"(?:admin\w*|root|superuser)\b"
    r"|\b(?:berechtigt|befugt|ermächtigt|bevollmächtigt|autorisiert|habilité\w*|autorisée?s?\s+à|autorizad[oa]s?"
    r"|autorizzat[oaie]|bevoegd|gemachtigd)\b"
    r"|\b(?:darf|kann)\b.{0,40}\b(?:freigeben|genehmigen|überweisen|erstatten)\b"
    r"|\b(?:peut|peux)\s+(?:approuver|autoriser|valider)\b|\bpued[eo]\s+(?:aprobar|autorizar)\b"
    r"|\bp(?:uò|osso|ode)\s+(?:approvare|autorizzare|aprovar|autorizar)\b"
    r"|\b(?:mag|kan)\b.{0,40}\b(?:goedkeuren|autoriseren)\b"
    r"|\b(?:admin\w*|root|superuser|beheerders?)[-\s]?(?:rechten?|zugriff|zugang|toegang)\b"
    r"|\b(?:droits?|acc[eè]s|derechos?|permisos?|privilegios?|acceso|diritti|permessi|privilegi|accesso|direitos|permiss[oõ]es"
    r"|privil[eé]gios|acesso)\s+(?:d'|de\s+|di\s+|da\s+)?(?:admin\w*|amministrat\w*|root)\b"
    r"|\b(?:brauchen?|benötigen?)\s+(?:\w+\s+)?keine\s+(?:freigabe|genehmigung|bestätigung|zustimmung)\b"
    r"|\bfür\s+mich\s+gelt\w+\s.{0,30}\bnicht\b|\b(?:regeln|grenzen|limits)\s+gelten\s+(?:\w+\s+)?nicht\s+für\s+mich\b"
    r"|\bpas\s+besoin\s+d(?:'|e\s|'une\s)(?:\w+\s)?(?:autorisation|approbation|validation|confirmation)\b"
    r"|\bno\s+necesito\s+(?:\w+\s+)?(?:aprobaci[oó]n|autorizaci[oó]n|confirmaci[oó]n)\b"
    r"|\bnon\s+(?:ho\s+bisogno\s+di|mi\s+serve)\s+(?:\w+\s+)?(?:approvazion|autorizzazion|conferm)\w*"
    r"|\bgeen\s+(?:goedkeuring|bevestiging|autorisatie)\s+nodig\b"
    r"|\bn[aã]o\s+preciso\s+de\s+(?:\w+\s+)?(?:aprovaç|autorizaç|confirmaç|aprovac|autorizac|confirmac)\w*",
    "zh ja": r"(?:我|用[户戶]|使用者)(?:现在|現在)?(?:是|为|為)(?:系统|系統)?(?:管理[员員]|超[级級]用[户戶])"
    r"|(?:可以|有权|有權|能)(?:批准|审批|審批|授权|授權|查看所有)|管理者(?:です|である|だ)"
    r"|承認(?:できる|できます|する権限)|管理者の?権限|承認[はが]?(?:不要|いりません|必要ありません|必要ない)"
    r"|管理[员員]的?[权權]限|(?:不需要|无需|無需|不用)\S{0,4}(?:确认|確認|批准|审批|審批|授权|授權|审核|審核)",
    "ru": r"(?:\bя|\bпользователь|\bклиент)\s?(?:[-–—]\s|является\s)?(?:теперь\s|здесь\s|тут\s)?"
    r"(?:админ|root|рут|супер(?:пользователь|админ)|администратор(?:ом)?)"
    r"(?=\s*(?:[.,;!]|$)|\s(?:эт|систем|сервер|сайт|платформ|приложен|бот|чат|здесь|тут|с\s|и\s))"
    r"|\b(?:права\w*|доступ\w*)\s(?:администратора|админ\w*|суперпользователя|root|ко?\sвсем\b)"
    r"|\b(?:полный|неограниченный)\sдоступ\b|\bуполномочен\w*"
    r"|\b(?:мне|ему|ей|нам|пользователю|клиенту)\s(?:\w+\s){0,2}?"
    r"(?:разреш[её]н|разрешил|позволен|позволил|дозволен|можно)\w*\s(?:\w+\s){0,3}?"
    r"(?:одобр|утвержд|согласов|авториз|обходи|обойти|пропускать|экспорт|выгруж|просматр|видеть\sвс|удалять|переводить"
    r"|вс[её]\s*(?:[.,;!]|$))"
    r"|\b(?:могу|может|вправе|имею\sправо|имеет\sправо)\s(?:\w+\s){0,3}?"
    r"(?:одобр|утвержда|утвердить|согласов|авториз|обходить|обойти)\w*\s(?:\w+\s){0,2}?"
    + _RU
    + r"|\b(?:без|не\s(?:нужн\w+|требует\w*|надо))\s(?:\w+\s){0,2}?(?:подтвержден|одобрен|согласован)\w*"
    r"|\bадмин\w*\sправа\b|\b(?:правил|ограничен|лимит)\w*\s(?:на|для)\sменя\sне\s(?:распростран|действ)\w+"
    r"|\b(?:правил|ограничен|лимит)\w*\sне\s(?:распростран|действ)\w+\s(?:на|для)\sменя\b"
    r"|\bосвобожд[её]н\w*\sот\s(?:\w+\s){0,2}?(?:провер|ограничен|правил|лимит|подтвержд)",
    "uk": r"(?:\bя|\bкористувач|\bклієнт)\s?(?:[-–—]\s|є\s)?(?:тепер\s|тут\s)?"
    r"(?:адмін|root|рут|супер(?:користувач|адмін)|адміністратор(?:ом)?)"
    r"(?=\s*(?:[.,;!]|$)|\s(?:ц[ьі]|систем|сервер|сайт|платформ|застосун|бот|чат|тут|з\s|і\s|та\s))"
    r"|\b(?:права\w*|доступ\w*)\s(?:адміністратора|адмін\w*|до\s(?:всіх|усіх))|\b(?:повний|необмежений)\sдоступ\b"
    r"|\bуповноважен\w*|\bадмін\w*\sправа\b"
    r"|\b(?:мені|йому|їй|нам|користувачу|клієнту)\s(?:\w+\s){0,2}?(?:дозвол|можна)\w*\s(?:\w+\s){0,3}?"
    r"(?:схвал|затвердж|погодж|обійти|обходити|експорт|перегляда|бачити\s(?:вс|ус)|видаляти|переказ)"
    r"|\b(?:можу|може|вправі|маю\sправо|має\sправо)\s(?:\w+\s){0,3}?"
    r"(?:схвал|затвердж|погодж|обходити|обійти)\w*\s(?:\w+\s){0,2}?"
    + _UK
    + r"|\b(?:без|не\s(?:потрібн\w+|потребу\w+|вимага\w+))\s(?:\w+\s){0,2}?(?:підтвердженн|схваленн|погодженн)\w*"
    r"|\bзвільнен\w*\sвід\s(?:\w+\s){0,2}?(?:перевір|обмежен|правил|ліміт|підтвердж)",
    "pl": r"\b(?:jestem|użytkownik\sjest|klient\sjest)\s(?:\w+\s)?(?:adminem|root\w*|superużytkownikiem"
    r"|administratorem(?=\s*(?:[.,;!]|$)|\s(?:teg|tej|system|serwer|stron|platform|aplikacj|kont|i\s|z\s)))"
    r"|\b(?:pełny|nieograniczony)\sdostęp\b|\bdostęp\sdo\swszystkich\b|\bupoważni\w+"
    r"|\b(?:uprawnieni|praw|dostęp)\w*\sadmin\w*"
    r"|\b(?:mogę|może|wolno\smi|mam\sprawo|ma\sprawo|uprawnion\w+\sdo)\s(?:\w+\s){0,2}?"
    r"(?:zatwierdza|zatwierdzi|autoryz|akceptowa|omija|pomija)\w*\s(?:\w+\s){0,2}?"
    + _PL
    + r"|\bbez\s(?:\w+\s)?(?:potwierdzenia|zatwierdzenia|autoryzacji|weryfikacji)\b"
    r"|\bnie\s(?:potrzebuj|wymaga)\w*\s(?:\w+\s)?(?:potwierdz|zatwierdz|autoryz|weryfik)"
    r"|\bzwolnion\w+\sz\s(?:\w+\s)?(?:weryfik|kontrol|zasad|limit|ogranicze)",
    "tr": r"\b(?:ben|kullanıcı|müşteri)\s(?:\w+\s){0,2}?(?:admin|root)\w*"
    r"|\b(?:bu|sistemin)\s(?:\w+\s)?yöneticisi(?:yim|dir)\b"
    r"|\b(?:ödeme|işlem|transfer|iade|fatura|havale|sipariş)\w*\s(?:\w+\s){0,2}?onaylayabil\w+"
    r"|\b(?:yönetici|admin\w*)\s(?:hak|yetki|izin|izn|erişim)\w*"
    r"|\bonayla\w*\s(?:yetki|izn|hakk)\w+|\byetkiliyim\b|\byetkim\svar\b|\byetkilendiril\w+"
    r"|\b(?:onay|doğrulama)\w*\s(?:gerekmez|gerekmiyor|olmadan|gerekmeden)\b|\bonaysız\b"
    r"|\b(?:tüm|bütün|her)\s(?:hesap|kayıt|veri)\w*\s(?:\w+\s)?(?:erişebil|görebil|silebil)\w+|\btam\serişim\w*",
    "ko": r"(?:시스템|서버|최고|슈퍼|이\s?앱의?)\s?관리자(?:이|입|예|야|다|로)"
    r"|(?:저는|나는|제가|내가|사용자[는가])\s?(?:관리자|루트|어드민)(?:이|입|예|야|다|로)"
    r"|(?:결제|송금|환불|거래|이체|지급|주문|지불)\S{0,4}\s?(?:\S{1,10}\s){0,2}?승인할\s?(?:수\s?있|권한)"
    r"|관리자\s?권한|승인\S{0,2}\s?필요\s?없"
    r"|승인\s?(?:권한|없이)|(?:인증|허가)\s?없이"
    r"|모든\s?(?:\S{1,8}\s)?(?:데이터|계정|기록|정보)\S{0,3}\s?"
    r"(?:접근|열람|조회|삭제)할?\s?(?:수\s?있|권한)",
    "ar": r"(?<!\w)(?:أنا|انا|المستخدم|العميل)\s(?:\w+\s)?(?:مدير|مسؤول|مشرف)\s(?:هذا\s)?(?:ال)?"
    r"(?:نظام|موقع|منصة|خادم|حساب|تطبيق)|(?<!\w)(?:أنا|انا)\s(?:ال)?[أا]دمن"
    r"|(?<!\w)(?:مسموح|مصرح|يحق|يسمح|مخول|مفوض|لدي\sصلاحية|لدي\sإذن)\w*\s(?:\w+\s){0,2}?[بل]?(?:ال)?"
    r"(?:موافقة|اعتماد|تجاوز|تحويل|حذف|وصول|اطلاع)"
    r"|(?<!\w)(?:أستطيع|استطيع|يمكنني|بإمكاني|يمكنه)\s(?:ال)?(?:موافقة|اعتماد|تجاوز)\s"
    r"|(?<!\w)(?:بدون|دون)\s(?:أي\s)?(?:موافقة|تأكيد|تحقق)"
    r"|(?<!\w)صلاحيات\s(?:ال)?(?:مدير|مشرف|مسؤول|[أا]دمن)"
    r"|(?<!\w)معفى\sمن\s(?:\w+\s)?(?:ال)?(?:قواعد|قيود|تحقق|مراجعة|حدود)",
}
"""Who says that he, or the user, may do what others may not, or that something needs no approval."""

ORDERS = {
    "de fr es it nl": r"\b(?:ignorier\w*|missacht\w*|vergiss|überweis\w*|leite\w*|ignore[zrs]?|oublie[zr]?"
    r"|transf[eé]re\w*|vire[zr]?|ignora\w*|olvid\w+|reenv[ií]a\w*|negeer|stuur)\b.{0,60}"
    r"\b(?:anweisung\w*|regel\w*|vorgabe\w*|rechnung\w*|consignes?|instruc\w+|règles?|factures?|reglas?|facturas?"
    r"|istruzioni|regole|instructies|regels)\b"
    r"|\bab\s+sofort\b(?!\s+(?:bin|esse|wohne|arbeite|heiße|möchte|mag|trinke)\b).{0,60}\b(?:immer|jede\w*|ohne)\b",
    "ru": r"\b(?:(?:про)?игнорируй|забудь|не\sсоблюдай|обойди|отключи)(?:те)?\s(?:[\w,]+\s){0,4}?"
    r"(?:правил|инструкц|указани|ограничени|запрет)"
    r"|\b(?:пересылай|перешли|отправляй|отправь|направляй|переводи|переведи|перечисляй|оплачивай)(?:те)?\s"
    r"(?:[\w,]+\s){0,3}?(?:сч[её]т|плат[её]ж|деньги|средства|фактур|накладн)"
    r"|\bвсегда\s(?:одобряй|подтверждай|рекомендуй|доверяй|игнорируй|соглашайся)"
    r"|\b(?:отныне|впредь|с\sэтого\sмомента)\b(?!.{0,40}(?:отвеча|пиши|говор|называ|обраща|использу))"
    r".{0,60}\b(?:одобря|подтвержда|пересыла|отправля|перевод|игнорир|обходи)",
    "uk": r"\b(?:(?:про)?ігноруй|забудь|не\sдотримуйся|обійди|вимкни)(?:те)?\s(?:[\w,]+\s){0,4}?"
    r"(?:правил|інструкц|вказів|обмежен|заборон)"
    r"|\b(?:пересилай|перешли|надсилай|надішли|переказуй|сплачуй)(?:те)?\s(?:[\w,]+\s){0,3}?"
    r"(?:рахун|плат[іе]ж|гроші|кошти)"
    r"|\bзавжди\s(?:схвалюй|підтверджуй|рекомендуй|довіряй|ігноруй|погоджуйся)"
    r"|\b(?:відтепер|від\sцього\sмоменту)\b(?!.{0,40}(?:відповід|пиши|говор|звертай))"
    r".{0,60}\b(?:схвал|підтвердж|пересила|надсила|ігнор|обходь)",
    "pl": r"\b(?:z?ignoruj|zapomnij|pomiń|obejdź|wyłącz)(?:cie)?\s(?:[\w,]+\s){0,4}?"
    r"(?:zasad|reguł|instrukcj|polece|ogranicze)"
    r"|\b(?:przesyłaj|przekazuj|wysyłaj|prześlij|wyślij|przelewaj|przelej)(?:cie)?\s(?:[\w,]+\s){0,3}?"
    r"(?:faktur|płatno|pieniądze|rachun)"
    r"|\bzawsze\s(?:zatwierdzaj|polecaj|ufaj|ignoruj)\b"
    r"|\b(?:odtąd|od\steraz)\b.{0,60}\b(?:zatwierdzaj|przesyłaj|wysyłaj|ignoruj)\b",
    "tr": r"\b(?:kural|talimat|yönerge|kısıtlama)\w*\s(?:\w+\s){0,3}?"
    r"(?:görmezden\sgel|yok\s?say|unut|dikkate\salma)(?:in|ın|un|yın|ınız|iniz)?\s*(?:[.,!;]|$|\sve\b)",
    "ko": r"(?:규칙|지시|지침|명령|제한|프롬프트)\S{0,4}\s?(?:\S{1,10}\s){0,2}?"
    r"(?:무시해|무시하고|무시하세|무시하십|무시하라|잊어|따르지\s?마)"
    r"|(?:청구서|송장|결제|돈)\S{0,3}\s?(?:\S{1,60}\s){0,4}?"
    r"(?:보내(?:라|세요|십시오|\s?주)|전달해|전달하세|송금하[세라]|이체하[세라])",
    "ar": r"(?<!\w)(?:تجاهل|انس|تجاوز)(?:ي|وا)?\s(?:\w+\s){0,2}?(?:ال)?(?:تعليمات|قواعد|أوامر|قيود|إرشادات)",
}
"""Who tells the agent to break its rules, or what to do with money from now on."""

SENDING = {
    "ru uk pl": r"\b(?:пересылай|перешли|отправляй|отправь|направляй|шли|дублируй|копируй|пересилай|надсилай|надішли"
    r"|przesyłaj|prześlij|wysyłaj|wyślij|przekazuj)(?:те|cie)?\s[^\n@]{0,80}\S@\S",
    "tr": r"\S@[\w.-]{3,60}['’]?\w{0,3}\s(?:\S{1,20}\s){0,3}?"
    r"(?:gönder|ilet|yönlendir|aktar)(?:in|iniz|ın)?\s*(?:[.,!;]|$)",
    "ko": r"\S@[\w.-]{3,60}(?:로|으로|에)\s?(?:\S{1,10}\s){0,2}?"
    r"(?:보내(?:라|세요|십시오|\s?주)|전달[해하]|송금[해하]|전송[해하])",
    "ar": r"(?<!\w)(?:أرسل|ارسل|حول|وجه)\s[^\n@]{0,80}\S@\S",
}
"""Who has something sent to an address."""
