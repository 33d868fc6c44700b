"""Tell from the lines above result sets of which server and database each one is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from routing.importing.catalog.printed_lines import DATABASE, ELLIPSES, LONGEST_LINE, is_title
from routing.importing.catalog.views import VIEWS, CatalogView, ResultSet, names_server

# SSMS and sqlcmd tell which server :connect reached, as in Connecting to HUB... and Verbindung mit HUB wird ...
_CONNECT = re.compile(
    r"connect|connex|conness|cone[ctx]|verbind|подключ|соедин|połącz|bağlan|připoj|anslut|接続|连接|連接|連線|연결",
    re.IGNORECASE,
)
_CONNECTED = re.compile(
    r"sqlcmd ?: .{0,80}(?:success|erfolgreich|réussi|correct|[eéê]xito|sucesso|riuscit|успешно|正常|成功|성공)",
    re.IGNORECASE,
)
_NAMED_SERVER = re.compile(
    r"[-=*#:\s]{0,80}@{0,2}(?P<label>[^\W\d][^:=\uff1a\r\n]{0,40}?)\s?[:\uff1a=]\*{0,2}\s?"
    r"(?P<name>[^\s;|]{1,128}?),?(?:[-=*#\s]{0,80}|[;|\s]{1,9}(?P<rest>[^\W\d].*))"
)
# The prompt of a terminal shows with which server sqlcmd, Invoke-Sqlcmd and dbatools worked.
_COMMAND = re.compile(r".{0,300}?\s-(?P<label>S|(?i:ServerInstance|SqlInstance))[ :=]{1,2}(?P<name>\S+)(?P<rest>)")
_TAGS = re.compile(r"<[^<>]*>")
_DEFAULT_PORT = re.compile(r"^tcp:|,1433$", re.IGNORECASE)
_AROUND_WORD = "-=*#.,:;()[]{}<>/\\|'\"`\u2026"
_NAME = re.compile(r"(?=.*[^\W\d]|(?:\d+\.){3}\d)[\w$.,\\-]{1,128}")
# The words of headings that say what a result set is of, and the words between it and a server or database.
_SUBJECT = re.compile(
    rf"sys[._]\w{{1,60}}|dm_\w{{1,60}}|{'|'.join(VIEWS)}"
    r"|(?:rout(?:es?|en|ing)|r[uo]tas?|rotalar|tras[ay]|itin[eé]raires?|servi[cçz]\w{1,3}|dienste?|usługi|služby"
    r"|datab\w{2,4}|datenbank(?:en)?|queues?|filas?|files?|colas?|warteschlangen?|endp\w{3,5}|[ck]onversa\w{3,6}|dialog\w?"
    r"|messages?|mensa\w{3,5}|nachrichten?|transmission|broker|results?|ergebnisse?|outputs?|reports?|berichte?|kolejki"
    r"|(?:rout(?:es?|en)|queues?|results?|resultset|outputs?|reports?|table|tab|sheet|page|grid|query|select|q|run|step"
    r"|phase|part|section|item|figure|example|schritt|teil|paso|parte|[eé]tape|passo)\d+"
    r"|служб\w?|маршрут\w?|очеред\w?|сервис\w?|сообщени\w|サービス|ルート|キュー|服务|路由|队列|서비스)"
)
_BETWEEN = re.compile(r"server|instance|sql|sys|of|on|at|from|for|the|in|von|auf|de|del|du|sur|en|h?\d+")
# Servers that are only counted or named by their part in a dialog, as in Server A, box 2 and the sending instance,
# get a name in capitals. I begins a clause.
_KIND = r"(?:serv(?:er|eur|idor)|instan(?:ce|z|cia|za)|r[eé]pli[ck]at?|node|knoten|host|machine|box|vm)"
_PART = (
    r"(?:first|second|third|other|sending|receiving|source|initiat(?:ing|or)|destination|target|primary|secondary"
    r"|(?:erste|zweite|dritte|andere|sendende|empfangende)[nrsm]?|premi[eè]re?|seconde?|deuxi[eè]me|autre"
    r"|primer[ao]?|segund[ao]|otr[ao]|primeir[ao]|outr[ao])"
)
_COUNTED = re.compile(rf"\b(?:{_KIND} (?:[a-hj-z]|\d{{1,3}})|{_PART} {_KIND})\b", re.IGNORECASE)
# A machine by its capitals and digits, by its part or by a letter that counts it, the instance of one, and a word
# in capitals that is no usual abbreviation.
_MACHINE = re.compile(
    rf"(?=\D+\d)(?:[A-Z][A-Z0-9_-]*|[a-z][a-z0-9_-]*)|(?i:{_PART}-{_KIND}"
    r"|(?=[\w-]*-[a-z]$)[\w-]*(?:sql|srv|server|vm|node|host|db)[\w-]*)"
)
_NAMED_INSTANCE = re.compile(r"[\w-]+\\[\w$]+")
_CAPITALS = re.compile(
    r"(?!(?:T?-?SQL|SSMS|DMV|DBA?|I[DP]|GUID|TCP|FYI|OK|XML|JSON|CSV|UTC|DNS|VM|HA|AG|ASAP|BTW|NULL|PS|I|RDS|AWS)S?$)"
    r"[A-Z][A-Z0-9_.-]+"
)
_AFTER_MACHINE = re.compile(r"[\\,]")
_TOWARDS = frozenset(["to", "for", "nach", "an", "vers", "para", "hacia", "ab"])
# The parts of servers in a dialog and in a company.
_ROLE = re.compile(r"initiator|target|sender|receiver|forwarder|primary|secondary|dev|prod|uat|qa|staging")
# An introduction has its server behind these words, unless one that begins a phrase or names a file follows.
# Behind other words, as in This is wrong, a verb has no server.
_PLACED = re.compile(
    r"(?:\S* (?:on|at|from|here's|auf|von|bei|aus|sur|de|chez|desde|da|em)|here (?:is|are)|hier ist|ici est"
    r"|aqu[ií] es) "
    r"(?!\S+\.(?:sql|csv|tsv|txt|json|xml|xlsx|md)$)"
    r"(?!(?:an?|the|th(?:is|at|[eo]se)|all|each|both|some|any|my|our|your|its|their|it|here|there|now|what|how|where"
    r"|one|two|first|second|third|next|last|other|d[aei][srnmt]|diese[rsmn]?|eine[rmsn]?|l[aeo]s?|el|un[aeo]?s?"
    r"|est[aeo]s?|which|server|instance|sql|sys|in|on|at|from|of|\d+)$)\S+",
    re.IGNORECASE,
)


# The words of printed lines repeat.
@lru_cache(4096)
def _is_subject(word: str) -> bool:
    return _SUBJECT.fullmatch(word) is not None


@lru_cache(4096)
def _is_between(word: str) -> bool:
    return _BETWEEN.fullmatch(word) is not None


@lru_cache(4096)
def _is_name(word: str) -> bool:
    return _NAME.fullmatch(word) is not None


class ConnectionMark(NamedTuple):
    """A line that names the server of the next result sets: by a label, an announcement, or as a title.

    ``kind`` is the label in lower case, the sign of an announcement, or a kind of title. ``words`` may name the
    server. ``name`` is the server of a label as it is written, and ``rest`` the text behind it.
    """

    kind: str
    words: frozenset[str]
    name: str = ""
    rest: str = ""


Title = tuple[str, frozenset[str]]
"""The kind and words of a line that may name the server or database of the next result sets."""
ServerMarks = Mapping[str, frozenset[str]]
"""The lines that name a server: the words of the last one of each kind."""
_ANNOUNCED, HEADING, CAPTION = ":", "#", ""
_LABEL, _SENTENCE, _INTRODUCTION, _DATABASE, _CELL = " :", ".", ".:", "database", "cell"
_NAMES = (HEADING, CAPTION, _LABEL)
TITLES = (*_NAMES, _DATABASE)
"""The kinds of titles that consist of a name."""
# A title such as Database Shop, which may also be one of database mirroring, or in the sending database.
_OF_DATABASE = re.compile(
    rf"(?:\w{{2,20}}ing )?(?:{DATABASE}) (?P<name>[\w.$-]+)"
    rf"|(?:(?:{_BETWEEN.pattern}) ){{0,2}}(?P<part>{_PART}|ziel|quell|sende|empfangs)[ -]?(?:{DATABASE})",
    re.IGNORECASE,
)


def find_connection(line: str) -> ConnectionMark | None:
    """Return the connection that a line announces, or the server that it names, or None."""
    text = line.strip()
    named = _NAMED_SERVER.fullmatch(text)
    if named is None or not names_server(named["label"].lower()):
        named = _COMMAND.match(text) if " -" in text else None
    if named is not None:
        server = _DEFAULT_PORT.sub("", named["name"].strip("'\""))
        return ConnectionMark(named["label"].lower(), frozenset([server.casefold()]), server, named["rest"] or "")
    is_announced = text.endswith(ELLIPSES) and len(text) < LONGEST_LINE and _CONNECT.search(text)
    if is_announced or _CONNECTED.match(text) is not None:
        words = (_DEFAULT_PORT.sub("", word.strip(_AROUND_WORD)) for word in text.casefold().split())
        return ConnectionMark(_ANNOUNCED, frozenset(words))
    if not is_title(text):
        return None
    names = _names_in(_name_counted(text), is_heading=True)
    return _find_database(text) or (ConnectionMark(HEADING, names) if names else None)


def _name_counted(line: str) -> str:
    """Write servers that are only counted as one word in capitals, as in SERVER-A."""
    return _COUNTED.sub(lambda match: match[0].replace(" ", "-").upper(), line)


def _find_database(title: str) -> ConnectionMark | None:
    match = _OF_DATABASE.fullmatch(_TAGS.sub(" ", title).strip(f"{_AROUND_WORD} "))
    return None if match is None else ConnectionMark(_DATABASE, frozenset([match["name"] or match["part"]]))


def title_of_cell(line: str) -> Title:
    """Return the only cell of a result set without a header as a title. It may name a database or a server."""
    return _CELL, frozenset([line.strip()])


def find_caption(line: str) -> ConnectionMark | None:
    """Return the words of a line above a table that may be its server or database, or None without any.

    The line is a caption if it consists of a name or links one to the subject of the table, else a sentence.
    """
    if len(line) >= LONGEST_LINE:
        return None
    if (database := _find_database(line)) is not None:
        return database
    line = _name_counted(line)
    names, is_introduction = _names_in(line, is_heading=False), line.rstrip().endswith(":")
    if names:
        return ConnectionMark(_LABEL if is_introduction else CAPTION, names)
    words = [word.strip(_AROUND_WORD) for word in _TAGS.sub(" ", line).split()]
    candidates = frozenset(
        # There a word counts as one in capitals.
        word.upper() if is_introduction and _PLACED.fullmatch(f"{earlier} {before} {word}") else word
        for earlier, before, word in zip(["", "", *words], ["", *words], words, strict=False)
        if _is_name(word) and before.lower() not in _TOWARDS and not _is_subject(word.lower())
    )
    return ConnectionMark(_INTRODUCTION if is_introduction else _SENTENCE, candidates) if candidates else None


def _names_in(title: str, *, is_heading: bool) -> frozenset[str]:
    """Return the server that a title consists of or links to its subject. A heading may also have the database."""
    written = [word.strip(_AROUND_WORD) for word in _TAGS.sub(" ", title).strip(f"{_AROUND_WORD} ").split()]
    words = list(map(str.casefold, written))
    names = [
        name
        for name, word in zip(written, words, strict=True)
        if word and not _is_subject(word) and not _is_between(word)
    ]
    is_of_subject = any(map(_is_subject, words))
    is_linked = any(not word or _is_between(word) for word in words)
    is_name = len(names) == 1 and _CAPITALS.fullmatch(names[0]) is not None
    is_bare = len(words) == 1 or ((is_heading or is_name) and not is_of_subject)
    if len(names) > 1 + (is_heading and "" in words) or not (is_bare or (is_of_subject and is_linked)):
        return frozenset()
    # A server may have its domain or a database behind it, as in HUB.Shop.
    valid = [name for name in names if _is_name(name)]
    return frozenset(valid).union(name.partition(".")[0] for name in valid if not name[0].isdigit())


def connect(marks: ServerMarks, mark: ConnectionMark) -> ServerMarks:
    """Return the marks after another line, which may name the same server."""
    if any(words <= mark.words or mark.words <= words for words in marks.values()):
        return marks
    return {**({} if mark.kind == _ANNOUNCED else marks), mark.kind: mark.words}


def find_server(marks: ServerMarks) -> str | None:
    """Return the one server that labels name, in lower case. MSSQLSERVER is any default instance."""
    labels = {word for kind, words in marks.items() if kind != _ANNOUNCED for word in words}
    names = sorted(labels - {"mssqlserver"})
    return names[0] if len(names) == 1 else None


# Titles name a server only if that is plain. Others, such as Notes, are titles of anything.


class KnownNames(NamedTuple):
    """Names of servers, databases and hosts in addresses that may be words of titles, in lower case.

    A named instance also has the name of its machine.
    """

    servers: frozenset[str]
    databases: frozenset[str]
    hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, servers: Iterable[object], databases: Iterable[object]) -> KnownNames:
        """Return the names among cells and options."""
        instances = {str(name).casefold() for name in servers if name}
        machines = {_AFTER_MACHINE.split(name)[0] for name in instances}
        written = frozenset(str(name).casefold() for name in databases if name)
        return cls(frozenset(instances | machines), frozenset(filter(_is_name, written)))


def refuse_several(parts: Sequence[tuple[CatalogView, ResultSet]], own: KnownNames, known: KnownNames) -> None:
    """Reject the rows of a file if lines name several servers or databases, and no column says of which a row is.

    ``own`` are the instance and the database that its rows count as of.
    """
    labels = [
        {kind: others for kind, words in rows.servers.items() if (others := words - known.databases)}
        for _, rows in parts
    ]
    named = {word for of_part in labels for kind in of_part.keys() - {_ANNOUNCED} for word in of_part[kind]}
    names = _find_plain(parts, named | known.servers, known.hosts) - known.databases
    titles = [
        _find_title(rows.titles, names) - of_labels or of_labels or own.servers
        for of_labels, (_, rows) in zip(
            (frozenset().union(*of_part.values()) for of_part in labels), parts, strict=True
        )
    ]
    if _have_none_in_common(titles, own.servers) or any(of_part != labels[0] for of_part in labels):
        _reject(parts, "instance", "servers")
    inside = [(view, rows) for view, rows in parts if view.per_database and rows.database is None]
    # A database may be called like any word of a sentence.
    above = [[title for title in rows.titles if title[0] != _SENTENCE] for _, rows in inside]
    titled = {word for of_part in above for title in of_part if title[0] == _DATABASE for word in _folded(title)}
    # Database Routes is rather the subject.
    databases = known.databases.union(word for word in titled if not _is_subject(word))
    titles = [_find_title(of_part, databases) or own.databases for of_part in above]
    cells = [next((words for kind, words in of_part[::-1] if kind == _CELL), frozenset()) for of_part in above]
    are_apart = all(cells) and len(set(cells)) > 1
    if are_apart or _have_none_in_common(titles, own.databases):
        _reject(inside, "database", "databases")


def _reject(parts: Sequence[tuple[CatalogView, ResultSet]], kind: str, kinds: str) -> None:
    for _, rows in parts:
        if f"{kind}_name" not in rows.columns:
            why = f"lines between result sets name several {kinds}"
            rows.reject_all(f"{why}, and no column says of which {kind} a row is")


def _have_none_in_common(titles: Sequence[frozenset[str]], own: frozenset[str]) -> bool:
    """Return whether titles have different names. Those of one instance are one name."""
    named = [own if own & title else title for title in titles if title]
    return bool(named) and not frozenset.intersection(*named)


def _find_title(titles: Sequence[Title], names: Collection[str]) -> frozenset[str]:
    """Return the names in the last title that has any."""
    return next(filter(None, (_folded(title).intersection(names) for title in titles[::-1])), frozenset())


def _folded(title: Title) -> frozenset[str]:
    return frozenset(map(str.casefold, title[1]))


def _find_plain(
    parts: Sequence[tuple[CatalogView, ResultSet]], servers: Collection[str], hosts: Collection[str]
) -> set[str]:
    """Return the words of titles that name a server, in lower case.

    They are known servers, have the form of one, or stand above result sets of one view in turn. Beside such a
    title, another one in capitals is a server too, and so is another word in the same sentence. Of introductions
    with words in capitals, two are enough.
    """
    titles = {title for _, rows in parts for title in rows.titles}
    above: dict[tuple[str, str], set[Title]] = defaultdict(set)
    for view, rows in parts:
        for title in {title[0]: title for title in rows.titles if title[0] in _NAMES}.values():
            above[view.name, title[0]].add(title)
    plain = {
        word for in_turn in above.values() if len(in_turn) > 1 for title in in_turn for word in _folded(title)
    }
    plain.update(
        word.casefold() for kind, words in titles for word in words if _is_plain(kind, word, servers, hosts)
    )
    sentences = [_folded(title) for title in titles if title[0] not in _NAMES]
    rests = {words - {word} for words in sentences for word in words & plain if len(words) > 1}
    others = {word for words in sentences for word in words if words - {word} in rests}
    in_capitals = {
        frozenset(filter(_CAPITALS.fullmatch, words)): kind for kind, words in titles if kind != _SENTENCE
    }
    introducing = [words for words, kind in in_capitals.items() if words and kind in (_LABEL, _INTRODUCTION)]
    if not plain and len(introducing) < 2:
        return set()
    return plain.union(others, *(map(str.casefold, words) for words in (in_capitals if plain else introducing)))


def _is_plain(kind: str, word: str, servers: Collection[str], hosts: Collection[str]) -> bool:
    """Return whether a word of a title is a known server or its part in a dialog, or has the form of one.

    Sentences also speak of the other ends of routes.
    """
    folded = word.casefold()
    has_form = _NAMED_INSTANCE.fullmatch(word) or (kind in _NAMES and _MACHINE.fullmatch(word))
    is_end = kind != _SENTENCE and (folded in hosts or _ROLE.fullmatch(folded) is not None)
    return folded in servers or is_end or bool(has_form)
