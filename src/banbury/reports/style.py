"""How a report looks: letters of the reader's own system, on paper by day and on slate by night."""

STYLE = """
:root { color-scheme: light dark; --page: #faf8f4; --card: #ffffff; --ink: #1f1d1a; --soft: #69635a; --rule: #e3ddd1;
  --fill: #f1ede4; --blue: 37, 99, 201; --orange: 200, 96, 12; --one: #2563c9; --two: #b8560a; }
@media (prefers-color-scheme: dark) { :root { --page: #15171b; --card: #1d2025; --ink: #e9e6df; --soft: #a9a59c;
  --rule: #343840; --fill: #262a31; --blue: 96, 156, 255; --orange: 240, 150, 70; --one: #7fb0ff; --two: #f2a45c; } }

* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.4rem; }
footer { margin-top: 3.5rem; padding-top: 1rem; padding-bottom: 2.5rem; border-top: 1px solid var(--rule);
  color: var(--soft); font-size: .88rem; }
h1 { font-size: 1.95rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.015em; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: 1.1rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.02rem; margin: 1.6rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; overflow-wrap: break-word; }
a { color: var(--one); text-decoration: none; }
a:hover { text-decoration: underline; }
sup { line-height: 0; }
.lead { font-size: 1.15rem; line-height: 1.5; }
.soft { color: var(--soft); font-size: .93rem; }
.name { font-weight: 600; overflow-wrap: anywhere; }
.advice { border-left: 3px solid var(--one); padding: .15rem 0 .15rem .9rem; }
nav { display: flex; flex-wrap: wrap; gap: .15rem 1.1rem; margin: 1.1rem 0 0; font-size: .93rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.4rem; margin: .8rem 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
details { margin: .8rem 0; }
summary { cursor: pointer; }
details > summary { color: var(--one); }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.2rem, 1fr)); gap: .7rem; margin: 1.3rem 0 0; }
.tile, .card, .box, figure, details.mistake { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tile { padding: .75rem .95rem; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile span { display: block; color: var(--soft); font-size: .86rem; }

.box { overflow-x: auto; margin: .8rem 0; }
.box table { border-collapse: collapse; width: 100%; font-size: .93rem; }
.box th, .box td { padding: .38rem .75rem; text-align: left; vertical-align: top; border-top: 1px solid var(--rule); }
.box thead th { border-top: 0; color: var(--soft); font-weight: 500; font-size: .86rem; white-space: nowrap;
  vertical-align: bottom; }
.box tbody th { font-weight: 600; overflow-wrap: break-word; min-width: 11rem; }
.box td.bars { white-space: nowrap; font-variant-numeric: tabular-nums; }
.box td.number, .box th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.box td.long { min-width: 13rem; overflow-wrap: anywhere; color: var(--soft); }
.meter { display: inline-block; width: 5.5rem; height: .55rem; border-radius: 3px; background: var(--fill);
  overflow: hidden; vertical-align: .05rem; margin-right: .5rem; }
.meter i { display: block; height: 100%; background: rgb(var(--blue)); border-radius: 3px; }
.wide { width: 16rem; max-width: 45%; }
.wrong i { background: rgb(var(--orange)); }
.tag { font-size: .78rem; padding: 0 .45rem; border-radius: 4px; background: rgba(var(--orange), .2); }

.matrix { width: fit-content; max-width: 100%; }
.box.matrix table { width: auto; }
.box.matrix td { text-align: center; vertical-align: middle; padding: .45rem .6rem; min-width: 3.4rem;
  font-variant-numeric: tabular-nums; border: 1px solid var(--card); border-width: 1px 0 0 1px; }
.box.matrix th { border: 0; text-align: center; }
.box.matrix tbody th, .box.matrix th.corner { position: sticky; left: 0; background: var(--card); text-align: right;
  min-width: 5.2rem; max-width: 11rem; overflow-wrap: anywhere; white-space: normal; font-weight: 500; }
.box.matrix th.corner { font-size: .78rem; font-weight: 400; }
.matrix th.up > div { writing-mode: vertical-rl; transform: rotate(180deg); margin: 0 auto; max-height: 11rem;
  overflow: hidden; text-overflow: ellipsis; }
.box.many td { font-size: .78rem; padding: .2rem .12rem; min-width: 1.95rem; }
.box.many tbody th { font-size: .78rem; padding: .2rem .5rem; min-width: 6rem; line-height: 1.2; }
.box.many thead th { font-size: .8rem; padding: .38rem .12rem; }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: .9rem; margin: .9rem 0; }
figure { margin: 0; padding: .8rem .8rem .5rem; }
.charts.shapes { align-items: start; }
.charts > figure:only-child { max-width: 34rem; }
figcaption { font-size: .9rem; font-weight: 600; margin: 0 0 .3rem .3rem; }
figcaption .key { font-weight: 400; color: var(--soft); margin-left: .8rem; white-space: nowrap; }
figcaption i { display: inline-block; width: .75em; height: .75em; border-radius: 50%; margin-right: .3em; }
figcaption i.one { background: var(--one); }
figcaption i.two { background: var(--two); }
figcaption i.level { border-radius: 0; border-top: 2px dashed var(--soft); width: 1.6em; height: 0; vertical-align: .25em; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11.5px; }
svg text.title { fill: var(--ink); font-size: 12px; }
svg .grid { stroke: var(--rule); }
svg .level, svg .ideal { stroke: var(--soft); stroke-dasharray: 4 4; }
svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .line.ideal { stroke-width: 1.2; }
svg .line.one, svg .whisker.one { stroke: var(--one); }
svg .line.two, svg .whisker.two { stroke: var(--two); }
svg .whisker { stroke-width: 1.3; opacity: .55; }
svg .mark { stroke: var(--card); stroke-width: 1.2; }
svg .mark.one, svg .column { fill: var(--one); }
svg .mark.two { fill: var(--two); }
svg .bar.one, svg .cell.one { fill: var(--one); }
svg .bar.two, svg .cell.two { fill: var(--two); }
svg .error { stroke: var(--soft); stroke-width: 1.2; }
svg .strip { fill: var(--ink); }
svg .hover { fill: transparent; }
svg .small text { font-size: 9.5px; }
svg .band { fill: var(--one); opacity: .18; }

.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); gap: .8rem; margin: .9rem 0;
  align-items: start; }
.card { padding: .8rem .95rem; }
.card h3 { margin: 0 0 .45rem; overflow-wrap: anywhere; }
.card ol { list-style: none; margin: 0; padding: 0; }
.card li { display: flex; justify-content: space-between; gap: .8rem; padding: .1rem .45rem; margin: .12rem -.45rem;
  border-radius: 4px; font-size: .92rem; }
.card li span { overflow-wrap: anywhere; min-width: 0; }
.card li b { font-weight: 500; white-space: nowrap; font-variant-numeric: tabular-nums; }

details.mistake { padding: .7rem 1rem; margin: .6rem 0; }
details.mistake > summary { color: inherit; overflow-wrap: anywhere; }
details.mistake > summary .soft { display: block; padding-left: 1.1rem; }
details.mistake .banbury { margin-top: .6rem; max-width: none; }
details.mistake .banbury p { max-width: none; }

@media (max-width: 36rem) {
  main, header, footer { padding-left: .9rem; padding-right: .9rem; }
  header { padding-top: 1.4rem; }
  h1 { font-size: 1.6rem; }
  .lead { font-size: 1.05rem; }
  .tiles { grid-template-columns: 1fr 1fr; gap: .5rem; }
  .tile { padding: .6rem .7rem; }
  .tile b { font-size: 1.25rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  .box th, .box td { padding: .34rem .55rem; }
  .box tbody th { min-width: 6rem; }
  .box td.long { min-width: 9.5rem; }
  .box.matrix tbody th, .box.matrix th.corner { max-width: 7rem; }
  .meter { width: 3rem; }
  details.mistake { padding: .6rem .7rem; }
}
"""
