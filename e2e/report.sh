#!/usr/bin/env bash
# The report as its readers see it: a rehearsed run, opened by headless Chromium in both languages. No console
# error, every plot drawn and not blank, no horizontal scroll at 390 px, printed to PDF without cut tables.
# Needs chromium and pdftotext (Debian: chromium poppler-utils, and a font with Chinese letters).
# Usage: e2e/report.sh [RUN_DIR]; without one, a short ladder is rehearsed first. TAPE_REPORT names another binary.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${CARGO_TARGET_DIR:-target}/debug
report=${TAPE_REPORT-}
if [ -z "$report" ]; then
  cargo build --quiet -p tapedeck-report-bins --bin tape-report
  report=$bin/tape-report
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || fail "no chromium"

if [ $# -gt 0 ]; then
  run=$1
else
  cargo build --quiet --bin tc03
  "$bin/tc03" --rehearse --quiet --tiers 3,36,60 --out "$work/runs" >/dev/null || true
  run=$(find "$work/runs" -mindepth 1 -maxdepth 1 -type d | head -n 1)
fi
[ -d "$run" ] || fail "there is no run to report on"

"$report" "$run" --lang both --out "$work/out" --quiet || [ $? -eq 4 ] || fail "tape-report"

browser() { # arguments...
  timeout 90 "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --user-data-dir="$work/profile" --enable-logging=stderr --v=0 "$@"
}

# The page forbids scripts by its own policy, so that the checks look at it from a frame of a page of their own.
cat >"$work/check.html" <<'HTML'
<!doctype html><meta charset="utf-8"><pre id="out">waiting</pre>
<iframe id="f" width="390" height="800" style="border:0"></iframe>
<script>
const name = location.hash.slice(1), f = document.getElementById('f');
f.onload = () => {
  const d = f.contentDocument, say = [];
  const wide = d.documentElement.scrollWidth;
  if (wide > 390) {
    const worst = [...d.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > 391 && !e.closest('.scroll'));
    say.push('scrolls to ' + wide + ' px: ' + worst.slice(0, 3).map(e => e.tagName + '.' + e.className).join(' '));
  }
  const plots = [...d.querySelectorAll('svg.plot')];
  if (plots.length < 8) say.push('only ' + plots.length + ' plots');
  for (const p of plots) {
    const box = p.getBoundingClientRect(), data = [...p.querySelectorAll('.data')];
    const drawn = data.some(e => { const b = e.getBBox(); return b.width + b.height > 1; });
    if (box.width < 100 || box.height < 50 || !drawn) say.push('blank plot: ' + p.getAttribute('aria-label'));
    for (const t of p.querySelectorAll('text')) {
      const b = t.getBBox(), v = p.viewBox.baseVal;
      if (b.x < -1 || b.x + b.width > v.width + 1) say.push('cut text: ' + t.textContent + ' in ' + p.getAttribute('aria-label'));
    }
  }
  if (d.querySelectorAll('script').length) say.push('a script');
  document.getElementById('out').textContent = say.length ? 'BAD ' + say.join('; ') : 'GOOD ' + plots.length + ' plots';
};
f.src = name;
</script>
HTML
cp "$work/check.html" "$work/out/check.html"

for page in report.html report.zh.html; do
  said=$(browser --allow-file-access-from-files --virtual-time-budget=8000 --window-size=1200,1000 --dump-dom \
    "file://$work/out/check.html#$page" 2>"$work/log" | grep -oE '(GOOD|BAD)[^<]*' | head -n 1) || true
  grep -E 'CONSOLE' "$work/log" >&2 && fail "$page: the console has something to say"
  case $said in GOOD*) ;; *) fail "$page: ${said:-nothing came back}" ;; esac
  browser --no-pdf-header-footer --print-to-pdf="$work/$page.pdf" "file://$work/out/$page" >/dev/null 2>&1 || fail "$page: no PDF"
  pdftotext -layout "$work/$page.pdf" "$work/$page.txt"
  for word in 'N\*' N036 wake_late_p99_ms; do
    grep -q "$word" "$work/$page.txt" || [ $# -gt 0 ] || fail "$page: $word is not on paper"
  done
  printf '%s: %s, PDF %s pages\n' "$page" "$said" "$(pdfinfo "$work/$page.pdf" | awk '/^Pages/ { print $2 }')"
done
