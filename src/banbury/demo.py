"""The demo: two small tables and some mail counted, predicted, explained, forgotten and learned back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import banbury as bb
from banbury.tally import Tally


def main() -> None:
    play_tennis()
    wine()
    mail()


def play_tennis() -> None:
    title("PlayTennis: fourteen days, four columns of words")
    weather = bb.datasets.play_tennis()
    tally = bb.count(weather, target="play")
    print(tally)
    model = bb.estimate(tally, how="mle")
    today = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    print(f"\nA day that is {', '.join(today.values())}: play? {model.predict(today)[0]}, with")
    print(f"  {model.posterior(today)[0, 0]:.3f} by plain counting (the textbook's .795),")
    smoothed = bb.estimate(tally, alpha=1.0)
    print(f"  {smoothed.posterior(today)[0, 0]:.3f} with add-one smoothing: the same tally, not counted again.\n")
    print(smoothed.explain(today))
    forget_and_learn(tally, {name: column[:1] for name, column in weather.items()})


def wine() -> None:
    title("Wine: 178 bottles, thirteen measurements, three cultivars")
    table = bb.datasets.wine()
    tally = bb.count(table, target="cultivar")
    model = bb.estimate(tally)
    print(f"{tally.n_rows} rows counted, {tally.n_parameters()} parameters estimated. Of the rows it learned from,")
    right = (model.predict(table) == table["cultivar"]).mean()
    print(
        f"{right:.1%} are classified right (by the most frequent cultivar: {tally.rows.value.max() / tally.n_rows:.1%}).\n"
    )
    row = {name: column[100] for name, column in table.items()}
    print(f"Bottle 100 is {row['cultivar']!r}. Why does the model say so?")
    print(model.explain(row))
    forget_and_learn(tally, {name: column[100:101] for name, column in table.items()})


def mail() -> None:
    title("Mail: text and a number in one table")
    table: dict[str, list[object]] = {
        "subject": [
            "You win a free prize, click now",
            "Cheap watches, free shipping today",
            "Notes of the board meeting on Monday",
            "Lunch with the new colleagues on Friday",
            "Last chance: claim your free money",
            "Draft of the report for the meeting",
        ],
        "links": [9, 7, 0, 1, 12, 0],
        "kind": ["spam", "spam", "ham", "ham", "spam", "ham"],
    }
    tally = bb.count(table, target="kind", features={"links": "poisson"})
    print(tally)
    model = bb.estimate(tally)
    row = {"subject": "Free lunch at the meeting", "links": 2}
    print(f"\n{row['subject']!r}, {row['links']} links:")
    print(model.explain(row))
    forget_and_learn(tally, {name: column[:1] for name, column in table.items()})


def forget_and_learn(tally: Tally, rows: Mapping[str, Sequence[object]]) -> None:
    one = tally.count(rows)
    without = tally - one
    back = without + one
    print(f"\nOne row forgotten: {tally.n_rows} → {without.n_rows} rows. Learned back: {back.n_rows}.")
    print(f"The tally is identical: {back == tally}\n")


def title(text: str) -> None:
    print(f"{text}\n{'─' * len(text)}")


if __name__ == "__main__":
    main()
