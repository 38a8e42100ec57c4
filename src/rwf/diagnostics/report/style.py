"""The style sheet of a report, for screens, phones and paper."""

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body {
  margin: 0; background: #fafaf8; color: #1c1c1a;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding: 2rem 0 0.5rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.8rem; padding-bottom: 0.3rem;
  border-bottom: 1px solid #d8d8d2; }
h3 { font-size: 1rem; margin: 0; }
p { margin: 0.2rem 0; color: #4a4a46; }
.figures { display: grid; gap: 1.25rem;
  grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); }
figure { margin: 0; padding: 1rem; background: #fff;
  border: 1px solid #e4e4de; border-radius: 6px; }
figure:last-child:nth-child(odd) { grid-column: 1 / -1; }
figure img { display: block; width: 100%; max-width: 34rem; height: auto; margin: 0.6rem auto 0; }
figcaption p { font-size: 0.9rem; }
.tiles { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.tiles div { padding: 0.8rem 1rem; background: #fff; border: 1px solid #e4e4de; border-radius: 6px;
  font-size: 0.9rem; color: #4a4a46; }
.tiles strong { display: block; font-size: 1.7rem; line-height: 1.2; color: #1c1c1a; }
.verdict { margin: 1.1rem 0; padding: 0 0 0 1.1rem; }
.verdict li { margin: 0.35rem 0; }
.beside { display: grid; gap: 0 2rem; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); }
.figures + .scroll { margin-top: 1.4rem; }
.scroll { overflow-x: auto; margin: 0 0 1.4rem; min-width: 0; }
.scroll:focus-visible { outline: 2px solid #0072b2; outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: 0.94rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #4a4a46; padding: 0 0 0.35rem; }
th, td { padding: 0.3rem 1.1rem 0.3rem 0; white-space: nowrap; text-align: right;
  vertical-align: top; border-bottom: 1px solid #e8e8e2; }
th:first-child, .words th, .words td { text-align: left; }
.words td { white-space: normal; min-width: 7rem; }
th:last-child, td:last-child { padding-right: 0; }
thead th { font-weight: 600; border-bottom: 1px solid #8a8a84; white-space: normal; }
tbody th { font-weight: 400; white-space: normal; overflow-wrap: anywhere; min-width: 6rem; }
footer { padding-top: 1.5rem; padding-bottom: 2.5rem; font-size: 0.85rem; }
@media (max-width: 40rem) {
  body { font-size: 15px; }
  main, footer { padding-left: 0.9rem; padding-right: 0.9rem; }
  .figures { grid-template-columns: 1fr; }
  figure { padding: 0.7rem; }
  th, td { padding-right: 0.6rem; }
  .words td { min-width: 4.5rem; }
  table { font-size: 0.9rem; }
}
@media print {
  body { background: #fff; font-size: 10.5pt; }
  main { max-width: none; padding: 0; }
  figure, tr, h2, h3 { break-inside: avoid; }
  h2 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; }
  .scroll { overflow: visible; }
}
"""
