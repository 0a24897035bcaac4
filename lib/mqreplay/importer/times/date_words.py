"""Words in the output of `date`: names of months and days in usual locales, and short names of time zones. Pure.

Names are compared without case and by their beginning, since a locale's short name begins its long one.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from functools import lru_cache
from typing import Final

# The beginnings of each month's name, by language: en de fr es it pt nl pl cs ru uk tr fi hu id.
_MONTHS: Final = (
    "jan ene gen stycz sty led янв січ oca tammi",
    "feb fév fev lut úno февр фев лют şub sub helmi",
    "mar mär mrz mrt mär bře мар бер maalis már",
    "apr avr abr kwi dub апр кві nis huhti ápr",
    "may mai maj mag mei maio maj kvě май мая тра touko máj",
    "jun juin giu cze čen июн чер haz kesä jún",
    "jul juil lug lip čec июл лип tem heinä júl",
    "aug aoû aou ago sie srp авг сер ağu agu elo",
    "sep set wrz zář сен вер eyl syys szept",
    "oct okt ott out paź říj окт жов eki loka",
    "nov lis ноя лис kas marras",
    "dec dez des dic déc gru pro дек гру ara joulu",
)
_DAYS: Final = (
    "mon lun mo maa ma seg пн пон pon po mån man pzt lundi 星期一 周一 週一 월요일 월 月曜日 月 一",
    "tue die di ti mar din ter вт wto út tis tir sal mardi 星期二 周二 週二 화요일 화 火曜日 火 二",
    "wed mit mi ke mer mié mie qua woe wo ср śro sro st ons çar mercredi 星期三 周三 週三 수요일 수 水曜日 水 三",
    "thu don do to jeu jue gio qui чт czw čt tor per 星期四 周四 週四 목요일 목 木曜日 木 四",
    "fri fre fr ven vie vri vr sex пт пят pią pia pt pá cum pe 星期五 周五 週五 금요일 금 金曜日 金 五",
    "sat sam sa sáb sab zat za sáb сб суб sob lör lør cmt la 星期六 周六 週六 토요일 토 土曜日 土 六",
    "sun son so dim dom zon zo вс вос nie ne sön søn paz su 星期日 周日 週日 星期天 일요일 일 日曜日 日",
)
_FILLER_WORDS: Final = "de del den der um uhr at à le el klo kl o г в a la il alle och date time"
_FILLERS: Final = frozenset(_FILLER_WORDS.split())
_STEM: Final = 3  # shorter names must be the whole word
AFTERNOON: Final = ("pm", "下午", "午後", "오후", "晚上")
MORNING: Final = ("am", "上午", "午前", "오전", "早上")

# Offsets from UTC in hours by short name, with the place of each meaning if there are several. Source: tz database.
_ONE: Final = {
    **{"EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10},
    **{"BRT": -3, "ART": -3, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3},
    **{"MSK": 3, "WAT": 1, "CAT": 2, "SAST": 2, "EAT": 3, "PKT": 5, "WIB": 7, "WITA": 8, "WIT": 9, "ICT": 7},
    **{"HKT": 8, "SGT": 8, "MYT": 8, "AWST": 8, "JST": 9, "KST": 9, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11},
    **{"NZST": 12, "NZDT": 13},
}
_SEVERAL: Final = {
    "CST": {"China": 8.0, "US Central": -6.0, "Cuba": -5.0},
    "IST": {"India": 5.5, "Israel": 2.0, "Ireland": 1.0},
    "BST": {"British summer": 1.0, "Bangladesh": 6.0},
    "AST": {"Atlantic": -4.0, "Arabia": 3.0},
    "GST": {"the Gulf": 4.0, "South Georgia": -2.0},
    "SST": {"Samoa": -11.0, "Singapore": 8.0},
    "AMT": {"Amazon": -4.0, "Armenia": 4.0},
    "ECT": {"Ecuador": -5.0, "Central Europe": 1.0},
}


def month_of(word: str) -> int | None:
    """Return the month that a word names.

    >>> month_of("février"), month_of("Feb"), month_of("мар"), month_of("broker")
    (2, 2, 3, None)
    """
    found = _place(word, _MONTHS)
    return None if found is None else found + 1


def weekday_of(word: str) -> int | None:
    """Return the day of the week that a word names, 0 for Monday.

    >>> weekday_of("星期五"), weekday_of("vendredi"), weekday_of("Fr"), weekday_of("broker")
    (4, 4, 4, None)
    """
    return _place(word, _DAYS)


def is_filler(word: str) -> bool:
    """Return whether a word has no meaning in a date, such as Uhr."""
    return word.casefold() in _FILLERS


def meanings_of(zone: str) -> dict[str, dt.timedelta]:
    """Return the places that use a short name of a zone with their offsets from UTC; empty for an unknown name.

    >>> meanings_of("JST"), list(meanings_of("CST"))
    ({'JST': datetime.timedelta(seconds=32400)}, ['China', 'US Central', 'Cuba'])
    """
    several = _SEVERAL.get(zone) or ({zone: _ONE[zone]} if zone in _ONE else {})
    return {place: dt.timedelta(hours=hours) for place, hours in several.items()}


@lru_cache(4096)
def _place(word: str, names: tuple[str, ...]) -> int | None:
    plain = unicodedata.normalize("NFC", word).casefold()
    for at, stems in enumerate(names):
        for stem in stems.split():
            is_short = len(stem) < _STEM and stem.isalpha()
            if plain == stem or (not is_short and len(plain) <= len(stem) + 8 and plain.startswith(stem)):
                return at
    return None
