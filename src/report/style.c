/* How the page looks, and the values shown under the pointer. That is the only script, and the page works
 * without it. */
#include "report/report.h"

const char *const ki_report_style[] = {
    ":root{color-scheme:light dark;--bg:#fbfbf9;--card:#fff;--ink:#1c2024;--quiet:#667078;--line:#dfe2e0;"
    "--c0:#0b6e99;--c1:#c2500a;--c2:#5b7f1e;--right:#1a7f37;--wrong:#cf222e;--warn:#8a5a00;--warnbg:#fff4d9}"
    "\n",
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e4e7e9;--quiet:#98a2aa;"
    "--line:#333a40;--c0:#58b6e0;--c1:#f2935a;--c2:#a5cc62;--right:#4cc26a;--wrong:#ff7b72;--warn:#f0c36a;"
    "--warnbg:#33290f}}\n",
    "*{box-sizing:border-box}\n",
    "body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,\"Segoe UI\","
    "Roboto,sans-serif;-webkit-text-size-adjust:100%}\n",
    "header,main,footer{max-width:1160px;margin:0 auto;padding:0 20px}\n",
    "header{padding-top:28px}\n",
    "h1{font-size:1.9rem;line-height:1.2;margin:0;overflow-wrap:anywhere}\n",
    "h2{font-size:1.25rem;margin:0 0 .4rem}\n",
    "h3{font-size:1rem;margin:1.1rem 0 .5rem}\n",
    ".subtitle{margin:.2rem 0 0;color:var(--quiet);overflow-wrap:anywhere}\n",
    "section{margin:24px 0;padding:20px;background:var(--card);border:1px solid "
    "var(--line);border-radius:10px}\n",
    "p{margin:.4rem 0}\n",
    ".about{max-width:75ch}\n",
    ".quiet{color:var(--quiet);font-size:.85rem}\n",
    ".note{color:var(--quiet);font-style:italic;overflow-wrap:anywhere}\n",
    ".warn{color:var(--warn);background:var(--warnbg);border-left:4px solid var(--warn);padding:.5rem .8rem;"
    "border-radius:4px;overflow-wrap:anywhere}\n",
    ".figures{display:flex;flex-wrap:wrap;gap:12px 48px;margin:.4rem 0 .8rem}\n",
    ".figure{display:flex;flex-direction:column}\n",
    ".figure .name{color:var(--quiet)}\n",
    ".figure .value{font-size:3rem;line-height:1.1;font-weight:650;font-variant-numeric:tabular-nums}\n",
    ".figure small{font-size:1.3rem;font-weight:400;color:var(--quiet)}\n",
    ".scroll{overflow-x:auto}\n",
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.6rem 0}\n",
    "th,td{padding:.25rem .9rem .25rem 0;text-align:right;border-bottom:1px solid "
    "var(--line);white-space:nowrap}\n",
    "th:first-child{text-align:left}\n",
    "thead "
    "th{color:var(--quiet);font-weight:500;font-size:.85rem;white-space:normal;vertical-align:bottom}\n",
    "tbody th{font-weight:500}\n",
    ".facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(230px,1fr));gap:4px 24px;margin:1rem "
    "0 0;"
    "font-size:.9rem}\n",
    ".facts div{display:flex;gap:.6rem;min-width:0}\n",
    ".facts .long{grid-column:1/-1}\n",
    "dt{color:var(--quiet);flex:none}\n",
    "dd{margin:0;min-width:0;overflow-wrap:anywhere}\n",
    "code,pre{font:.85rem/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\n",
    "pre{overflow-x:auto;margin:.6rem 0 0}\n",
    "summary{cursor:pointer}\n",
    "a{color:var(--c0)}\n",
    "figure{margin:0;min-width:0}\n",
    "figcaption{line-height:1.35}\n",
    ".panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:22px "
    "28px;margin-top:12px}\n",
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:22px 32px;"
    "margin-top:12px}\n",
    ".last{margin-left:.5em;font-variant-numeric:tabular-nums;color:var(--quiet)}\n",
    ".legend{display:flex;flex-wrap:wrap;gap:0 16px;font-size:.85rem}\n",
    ".legend>span{white-space:nowrap}\n",
    ".key{width:24px;height:8px;margin-right:6px;overflow:visible}\n",
    "svg.chart{display:block;width:100%;height:auto;margin-top:4px;touch-action:pan-y}\n",
    ".axis path{stroke:var(--line);stroke-width:1;fill:none}\n",
    "svg text{font:11px system-ui,sans-serif;fill:var(--quiet);font-variant-numeric:tabular-nums}\n",
    ".wide svg text{font-size:13px}\n",
    ".line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\n",
    ".line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1);stroke-dasharray:6 4}"
    ".line.c2{stroke:var(--c2);stroke-dasharray:2 4}\n",
    ".band{stroke:none;opacity:.2}.band.c0,.dot.c0{fill:var(--c0)}.band.c1,.dot.c1{fill:var(--c1)}"
    ".band.c2,.dot.c2{fill:var(--c2)}\n",
    "path.mark{stroke:var(--quiet);stroke-dasharray:3 3;fill:none}\n",
    ".cross{stroke:var(--ink);stroke-width:1;opacity:.5}\n",
    ".readout{min-height:1.4em;margin:0;font-size:.85rem;font-variant-numeric:tabular-nums;color:var(--ink)}"
    "\n",
    "figure .quiet{margin:0}\n",
    ".hits{display:grid;grid-template-columns:repeat(var(--k,9),minmax(0,1fr));gap:8px;max-width:980px;"
    "margin:0 0 "
    "12px}\n",
    ".hits div{min-width:0;border:3px solid transparent;border-radius:6px;padding:2px;font-size:.78rem;"
    "line-height:1.3;text-align:center}\n",
    ".hits span:last-child{display:block;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}\n",
    ".hits img{display:block;width:100%;height:auto;aspect-ratio:1;border-radius:2px}\n",
    ".blank{display:grid;place-items:center;aspect-ratio:1;background:var(--line);color:var(--quiet)}\n",
    ".hits div.query{border-color:var(--line)}\n",
    ".hits div.right{border-color:var(--right)}.hits .right span:last-child{color:var(--right)}\n",
    ".hits div.wrong{border-color:var(--wrong);border-style:dashed}.hits .wrong "
    "span:last-child{color:var(--wrong)}\n",
    "svg.map{display:block;width:100%;max-width:900px;height:auto;margin:8px auto 0;background:var(--bg);"
    "border:1px solid var(--line);border-radius:6px}\n",
    "footer{color:var(--quiet);font-size:.85rem;padding-bottom:32px}\n",
    "@media(max-width:640px){header,main,footer{padding:0 10px}header{padding-top:18px}section{padding:14px "
    "12px;"
    "margin:14px 0}h1{font-size:1.5rem}.figure .value{font-size:2.4rem}.wide svg text{font-size:17px}"
    "th,td{padding-right:.55rem}td "
    ".quiet{display:block}.hits{grid-template-columns:repeat(4,minmax(0,1fr));gap:5px;padding-bottom:8px;"
    "border-bottom:1px solid var(--line)}.hits div.query{grid-column:1/-1;display:flex;gap:10px;"
    "align-items:center;border-color:transparent}.hits .query img,.hits .query .blank{width:88px}}\n",
    "@media print{section{break-inside:avoid;border:none;padding:0}.readout{display:none}}\n",
    NULL};

/* For every chart: the nearest step to the pointer, and the values of all lines there. */
const char *const ki_report_script[] = {
    "document.querySelectorAll('svg.chart').forEach(function(svg){\n",
    "  var lines=[].map.call(svg.querySelectorAll('polyline.line'),function(l){\n",
    "    var at=l.getAttribute('points').trim().split(' ').map(function(p){return +p.split(',')[0]});\n",
    "    var v=l.dataset.p.trim().split(' ').map(function(p){return p.split(',')});\n",
    "    return {name:l.dataset.n,at:at,v:v}});\n",
    "  if(!lines.length)return;\n",
    "  var out=svg.parentNode.querySelector('.readout'),box=svg.viewBox.baseVal;\n",
    "  var cross=document.createElementNS('http://www.w3.org/2000/svg','path');\n",
    "  cross.setAttribute('class','cross');\n",
    "  svg.addEventListener('pointermove',function(e){\n",
    "    var r=svg.getBoundingClientRect(),x=(e.clientX-r.left)/r.width*box.width;\n",
    "    var text=[],mark=null;\n",
    "    lines.forEach(function(l){\n",
    "      var best=0;\n",
    "      l.at.forEach(function(a,i){if(Math.abs(a-x)<Math.abs(l.at[best]-x))best=i});\n",
    "      if(mark===null){mark=l.at[best];text.push('step '+l.v[best][0])}\n",
    "      text.push((lines.length>1?l.name.split(',')[0]+' ':'')+l.v[best][1])});\n",
    "    cross.setAttribute('d','M'+mark+' 10V'+(box.height-26));\n",
    "    svg.appendChild(cross);\n",
    "    out.textContent=text.join('  ·  ')});\n",
    "  svg.addEventListener('pointerleave',function(){cross.remove();out.textContent=''})});\n",
    NULL};
