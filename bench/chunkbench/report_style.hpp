/// The style sheet of the report.
#pragma once

namespace bench {

/// Light by default and on paper, dark where a screen asks for it. Text has a contrast of at least
/// 4.5:1 in both, lines and marks that carry meaning 3:1. Colours of values are not here but in
/// heat_maps.cpp.
inline constexpr const char* kReportStyle = R"css(
:root{color-scheme:light;--bg:#fff;--card:#f6f7f9;--ink:#1b1f24;--muted:#57606a;--line:#d5dae1;--grid:#e4e8ed;
--accent:#1f5fb4;--warn-bg:#fff6dc;--warn-line:#b98900;--bad:#b3261e}
@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--bg:#14171b;--card:#1d2127;--ink:#e9ecf0;
--muted:#a7b0bb;--line:#3a414b;--grid:#2a3038;--accent:#7fb2f5;--warn-bg:#2f2710;--warn-line:#d3a52b;--bad:#ff8a80}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1520px;padding:28px 28px 60px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
h1{font-size:26px;line-height:1.2;margin:0 0 4px}
h2{font-size:20px;line-height:1.25;margin:44px 0 6px;padding-top:18px;border-top:1px solid var(--line)}
h3{font-size:15px;margin:22px 0 8px}
h3::first-letter{text-transform:uppercase}
p{max-width:76ch;margin:0 0 10px}
.meta,.note{color:var(--muted)}
.meta{margin:0 0 18px;max-width:none}
.warning{background:var(--warn-bg);border-left:4px solid var(--warn-line);padding:9px 14px;margin:0 0 12px;max-width:none}
.verdict{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:18px 22px 12px;margin:0 0 8px}
.verdict .headline{font-size:20px;line-height:1.35;font-weight:600;max-width:none}
.verdict p{max-width:100ch}
figure{margin:0;min-width:0;max-width:100%}
figcaption{font-weight:600;font-size:14px;margin:0 0 2px}
.panels{display:flex;flex-wrap:wrap;gap:18px 22px}
.scroll{overflow-x:auto;max-width:100%}
table.heat{border-collapse:separate;border-spacing:4px;font-size:12.5px;line-height:1.2}
table.heat td{position:relative;min-width:52px;height:34px;padding:1px 3px;text-align:center;vertical-align:middle;
border:1px solid var(--line);border-radius:3px;font-weight:500}
table.heat th{padding:0 4px;border:0;background:none;vertical-align:middle;font-weight:400;font-size:11.5px}
table.heat thead th{text-align:left;font-style:italic}
table.heat tfoot th{text-align:center}
table.heat tfoot tr+tr th{font-style:italic}
table.heat small{display:block;font-size:10.5px;font-weight:400}
table.heat .absent{border:0}
table.heat .hatched{color:var(--muted);font-size:11px;font-weight:400;
background:repeating-linear-gradient(-45deg,var(--card) 0 5px,var(--grid) 5px 6px)}
table.heat .failed{color:var(--bad);font-weight:600}
table.heat .pruned,table.heat .measuring{border:1px dashed currentColor}
table.heat .best{outline:2.25px solid var(--ink);outline-offset:1px;font-weight:700}
table.heat .tie::after{content:"";position:absolute;top:4px;right:4px;width:5px;height:5px;border-radius:3px;
background:currentColor}
.legend{color:var(--muted);font-size:13px}
.legend i{display:inline-block;width:220px;max-width:40%;height:12px;vertical-align:-1px;border-radius:3px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(340px,1fr));gap:8px 40px}
.facts dl{display:grid;grid-template-columns:minmax(110px,max-content) 1fr;gap:3px 16px;margin:0;font-size:14px}
.facts dt{color:var(--muted)}
.facts dd{margin:0}
ul.notes{margin:4px 0 0;padding-left:20px;max-width:90ch}
details{margin:10px 0}
summary{cursor:pointer;font-weight:600;padding:4px 0}
table{border-collapse:collapse;font-size:12.5px;line-height:1.35;white-space:nowrap}
th,td{padding:4px 9px;text-align:right;border-bottom:1px solid var(--grid);overflow-wrap:normal}
th{color:var(--muted);font-weight:600;vertical-align:bottom;border-bottom-color:var(--line);background:var(--bg)}
th.n,td.n{text-align:left}
td.bar{background:linear-gradient(var(--accent),var(--accent)) left bottom no-repeat}
tr.level td{color:var(--muted)}
pre{overflow-x:auto;font-size:11px}
table:not(.heat) tbody tr:hover{background:var(--card)}
tr.top td{font-weight:700}
footer{margin-top:44px;color:var(--muted);font-size:13px}
@media (max-width:600px){body{padding:16px 14px 40px}.facts{grid-template-columns:1fr}}
@media print{@page{size:A4;margin:12mm}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
body{max-width:none;padding:0;font-size:11pt}
h2,h3,figcaption,.legend,.note{break-after:avoid}
figure,tr,.verdict,.facts section,.warning{break-inside:avoid}
footer,details{display:none}
.scroll{overflow:visible}
table:not(.heat){font-size:6.2pt;white-space:normal}
table:not(.heat) :is(th,td){padding:1.5px 3.5px}}
)css";

}  // namespace bench
