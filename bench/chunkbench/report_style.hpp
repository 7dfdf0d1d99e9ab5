/// The style sheet of the report.
#pragma once

namespace bench {

/// Light by default and on paper, dark where a screen asks for it. Text has a contrast of at least
/// 4.5:1 in both, lines and marks that carry meaning 3:1. Colours of values are not here but in
/// colour_scale.hpp.
inline constexpr const char* kReportStyle = R"css(
:root{color-scheme:light;--bg:#fff;--card:#f6f7f9;--ink:#1b1f24;--muted:#57606a;--line:#d5dae1;--grid:#e4e8ed;
--accent:#1f5fb4;--warn-bg:#fff6dc;--warn-line:#b98900;--bad:#b3261e;
--s0:#1f5fb4;--s1:#c4560e;--s2:#0d7d6c;--s3:#a32c74;--s4:#6a48b8;--s5:#7a5d0c;--w0:#9aa3ae;--w1:#c9cfd7}
@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--bg:#14171b;--card:#1d2127;--ink:#e9ecf0;
--muted:#a7b0bb;--line:#3a414b;--grid:#2a3038;--accent:#7fb2f5;--warn-bg:#2f2710;--warn-line:#d3a52b;--bad:#ff8a80;
--s0:#6aa5f2;--s1:#f09a56;--s2:#4cc4b0;--s3:#ea86bf;--s4:#ab95f2;--s5:#d3b655;--w0:#7a838f;--w1:#4d555f}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:1520px;padding:28px 28px 60px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
h1{font-size:26px;line-height:1.2;margin:0 0 4px}
h2{font-size:20px;line-height:1.25;margin:44px 0 6px;padding-top:18px;border-top:1px solid var(--line)}
h3{font-size:15px;margin:22px 0 8px}
p{max-width:76ch;margin:0 0 10px}
.meta,.note,figcaption small{color:var(--muted)}
.meta{margin:0 0 18px;max-width:none}
.warning{background:var(--warn-bg);border-left:4px solid var(--warn-line);padding:9px 14px;margin:0 0 12px;max-width:none}
.verdict{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:18px 22px 12px;margin:0 0 8px}
.verdict .headline{font-size:20px;line-height:1.35;font-weight:600;max-width:none}
.verdict p{max-width:100ch}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0 0 14px;padding:0}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.tiles dt{color:var(--muted);font-size:13px}
.tiles dd{margin:0;font-size:21px;font-weight:600;line-height:1.3;overflow-wrap:anywhere}
.tiles dd small{display:block;color:var(--muted);font-size:12.5px;font-weight:400;white-space:normal}
figure{margin:0;min-width:0;max-width:100%}
figcaption{font-weight:600;font-size:14px;margin:0 0 2px}
figcaption small{font-weight:400;font-size:13px;margin-left:6px}
.panels{display:flex;flex-wrap:wrap;gap:18px 22px}
.scroll{overflow-x:auto;max-width:100%}
svg{display:block;max-width:none}
svg.legend{max-width:100%;height:auto}
svg.defs{position:absolute}
svg.points{max-width:100%;height:auto}
svg.wide{width:100%;max-width:960px;min-width:720px;height:auto}
svg text{fill:var(--ink);font-size:12px;stroke:none}
svg .l,svg .t{fill:var(--muted);font-size:11.5px}
svg .t{font-style:italic}
svg .b{font-size:13px}
svg .h{font-size:13.5px;font-weight:600}
svg .m,svg .v,svg .v2{text-anchor:middle}
svg .e{text-anchor:end}
svg text.v{fill:inherit;font-size:12.5px;font-weight:500}
svg text.v2{fill:inherit;font-size:10.5px}
svg .best text.v{font-weight:700}
svg text.none{fill:var(--muted);font-size:11px;font-weight:400}
svg .f{stroke:var(--line);stroke-width:.75}
svg .early{fill:none;stroke-width:1;opacity:.75;stroke-dasharray:3 2.5}
svg .ring{fill:none;stroke:var(--ink);stroke-width:2.25}
svg .hb{fill:var(--card)}
svg .hn{stroke:var(--muted);stroke-width:.8;fill:none;opacity:.55}
svg .hf{stroke:var(--bad);stroke-width:.9;fill:none;opacity:.75}
svg .failed text.none{fill:var(--ink);paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round;font-weight:600}
svg .pending text.none,svg .skipped text.none,svg .measuring text.none{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}
svg .c:hover .f{stroke:var(--ink);stroke-width:1.5}
svg .tick{stroke:var(--muted);fill:none}
svg .grid{stroke:var(--grid);fill:none}
svg .level{stroke:var(--muted);stroke-dasharray:5 4;fill:none}
svg .limit path{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 3;fill:none}
svg .limit text{fill:var(--ink)}
svg .hit{fill:transparent}
svg .bar:hover .hit{fill:var(--grid);opacity:.5}
svg .range{stroke:var(--ink);stroke-width:1.4;fill:none}
svg .other{stroke:var(--muted);stroke-width:1.2;fill:none;opacity:.8}
svg .part rect{stroke:var(--bg);stroke-width:.75}
svg .line{fill:none;stroke-width:2}
svg .dashed{stroke-dasharray:6 3}
svg .dot{stroke:var(--bg);stroke-width:.9}
svg .pt{opacity:.85}
svg .joined .pt{opacity:1}
.s0,.p0 .dot{fill:var(--s0)}.s1,.p1 .dot{fill:var(--s1)}.s2,.p2 .dot{fill:var(--s2)}
.s3,.p3 .dot{fill:var(--s3)}.s4,.p4 .dot{fill:var(--s4)}.s5,.p5 .dot{fill:var(--s5)}
.w0{fill:var(--w0)}.w1{fill:var(--w1)}
.line.p0{stroke:var(--s0)}.line.p1{stroke:var(--s1)}.line.p2{stroke:var(--s2)}
.line.p3{stroke:var(--s3)}.line.p4{stroke:var(--s4)}.line.p5{stroke:var(--s5)}
ul.key{display:flex;flex-wrap:wrap;gap:4px 20px;list-style:none;margin:8px 0 10px;padding:0;font-size:13px;color:var(--muted)}
ul.key li{display:flex;align-items:center;gap:7px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(340px,1fr));gap:8px 40px}
.facts h3{margin:14px 0 6px}
.facts dl{display:grid;grid-template-columns:minmax(110px,max-content) 1fr;gap:3px 16px;margin:0;font-size:14px}
.facts dt{color:var(--muted)}
.facts dd{margin:0}
ul.notes{margin:4px 0 0;padding-left:20px;max-width:90ch}
details{margin:10px 0}
summary{cursor:pointer;font-weight:600;padding:4px 0}
summary:focus-visible{outline:2px solid var(--accent);outline-offset:3px}
table{border-collapse:collapse;font-size:12.5px;line-height:1.35;white-space:nowrap}
th,td{padding:4px 9px;text-align:right;border-bottom:1px solid var(--grid);overflow-wrap:normal}
th{color:var(--muted);font-weight:600;vertical-align:bottom;border-bottom-color:var(--line);background:var(--bg)}
th.n,td.n{text-align:left}
td.r{text-align:left;white-space:normal;min-width:180px}
tbody tr:hover{background:var(--card)}
tr.top td{font-weight:700}
footer{margin-top:44px;color:var(--muted);font-size:13px}
@media (max-width:600px){body{padding:16px 14px 40px}.verdict{padding:14px 16px 8px}.facts{grid-template-columns:1fr}}
@media print{@page{size:A4;margin:12mm}
@page numbers{size:A4 landscape;margin:10mm}
#tables{page:numbers}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
body{max-width:none;padding:0;font-size:11pt}
h2{margin-top:22px;padding-top:10px}
h2,h3,figcaption,ul.key,svg.legend,.note{break-after:avoid}
.tiles{grid-template-columns:repeat(5,1fr);gap:6px}
.tiles div{padding:6px 8px}
.tiles dd{font-size:12.5pt}
figure,.verdict,.tiles div,.facts section,.warning,.note,ul.key{break-inside:avoid}
svg.points{width:86mm}
footer{display:none}
.scroll{overflow:visible}
svg.heat{max-width:100%;height:auto}
svg.wide{min-width:0}
details::details-content{content-visibility:visible;block-size:auto}
table{font-size:6.2pt;line-height:1.25}
th{white-space:normal}
th,td{padding:1.5px 3.5px}
td.r{min-width:38mm}
tr{break-inside:avoid}
thead{display:table-header-group}}
)css";

}  // namespace bench
