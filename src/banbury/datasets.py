"""Small data sets to try things on. Each is a mapping of column names to lists, one entry per row."""

from __future__ import annotations

_PLAY_TENNIS = """
outlook   temperature  humidity  wind    play
sunny     hot          high      weak    no
sunny     hot          high      strong  no
overcast  hot          high      weak    yes
rain      mild         high      weak    yes
rain      cool         normal    weak    yes
rain      cool         normal    strong  no
overcast  cool         normal    strong  yes
sunny     mild         high      weak    no
sunny     cool         normal    weak    yes
rain      mild         normal    weak    yes
sunny     mild         normal    strong  yes
overcast  mild         high      strong  yes
overcast  hot          normal    weak    yes
rain      mild         high      strong  no
"""

_ENJOY_SPORT = """
sky    temp  humid   wind    water  forecast  play
sunny  warm  normal  strong  warm   same      yes
sunny  warm  high    strong  warm   same      yes
rainy  cold  high    strong  warm   change    no
sunny  warm  high    strong  cool   change    yes
"""


def play_tennis() -> dict[str, list[str]]:
    """Fourteen days, their weather, and whether tennis was played (Quinlan 1986; Mitchell 1997, table 3.2).

    >>> weather = play_tennis()
    >>> list(weather)
    ['outlook', 'temperature', 'humidity', 'wind', 'play']
    >>> weather["outlook"][:3], weather["play"].count("yes"), len(weather["play"])
    (['sunny', 'sunny', 'overcast'], 9, 14)
    """
    return _columns(_PLAY_TENNIS)


def enjoy_sport() -> dict[str, list[str]]:
    """Four days, and whether someone enjoyed their sport (Mitchell 1997, table 2.1).

    >>> days = enjoy_sport()
    >>> days["sky"], days["play"]
    (['sunny', 'sunny', 'rainy', 'sunny'], ['yes', 'yes', 'no', 'yes'])
    """
    return _columns(_ENJOY_SPORT)


def wine() -> dict[str, list[float] | list[str]]:
    """Thirteen measurements of 178 wines from three cultivars: scikit-learn's copy of the UCI data set.

    >>> wines = wine()
    >>> len(wines), sorted(set(wines["cultivar"]))
    (14, ['class_0', 'class_1', 'class_2'])
    >>> wines["alcohol"][:3]
    [14.23, 13.2, 13.16]
    """
    from sklearn.datasets import load_wine

    data = load_wine()
    columns: dict[str, list[float] | list[str]] = {
        name: values.tolist() for name, values in zip(data.feature_names, data.data.T, strict=True)
    }
    columns["cultivar"] = data.target_names[data.target].tolist()
    return columns


def _columns(text: str) -> dict[str, list[str]]:
    header, *rows = (line.split() for line in text.strip().splitlines())
    return {name: list(values) for name, values in zip(header, zip(*rows, strict=True), strict=True)}
