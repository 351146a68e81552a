#!/usr/bin/env bash
# The report as its readers see it: a rehearsed campaign, opened by headless Chromium in both languages. No console error,
# no network, every plot drawn and not blank, no horizontal scroll at 390 px, printed to PDF without cut tables, no English
# left in the Chinese page. Then each of these is broken on purpose, and the check has to notice.
# Installs chromium, poppler-utils and a font with Chinese letters where they are missing and it may.
# Usage: e2e/report.sh [RUN_DIR]; without one, a short campaign is rehearsed first. TAPE_REPORT names another binary,
# KEEP a folder that the pages, plots, tables and PDF files are left in.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${CARGO_TARGET_DIR:-target}/debug
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

need=()
command -v chromium >/dev/null || need+=(chromium)
command -v pdftotext >/dev/null || need+=(poppler-utils)
fc-list :lang=zh 2>/dev/null | grep -q . || need+=(fontconfig fonts-wqy-zenhei)
if ((${#need[@]})); then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "install ${need[*]}"
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "${need[@]}" >/dev/null
fi

report=${TAPE_REPORT-}
if [ -z "$report" ]; then
  cargo build --quiet -p tapedeck-report-bins
  report=$bin/tape-report
fi
if [ $# -gt 0 ]; then
  run=$1
else
  cargo build --quiet --bin campaign
  # A campaign's parts may say no, and words under load do here: what counts is that each has an answer.
  "$bin/campaign" --rehearse --quiet --config e2e/report/campaign.toml --on-drift accept --on-better accept \
    --out "$work/runs" >/dev/null || [ $? -eq 1 ] || fail "the campaign"
  run=$(find "$work/runs" -mindepth 1 -maxdepth 1 -type d | head -n 1)
fi
[ -d "$run" ] || fail "there is no run to report on"

out=$work/out
"$report" "$run" --lang both --out "$out" --quiet || fail "tape-report"
cp e2e/report/check.html "$out/"

browser() { # arguments...
  timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --allow-file-access-from-files --user-data-dir="$work/profile" --enable-logging=stderr --v=0 "$@"
}

# Prints what is wrong with a page, or GOOD and what is on it. Words on the console are wrong, too.
look() { # page
  browser --virtual-time-budget=60000 --window-size=1200,1000 --dump-dom "file://$out/check.html#$1" \
    2>"$work/log" | sed -n '/<pre id="out">/,/<\/pre>/{s/.*<pre id="out">//;s/<\/pre>.*//;p}' | grep -E '^(GOOD|BAD) ' ||
    echo "BAD nothing came back"
  grep -E 'CONSOLE' "$work/log" | sed 's/^.*CONSOLE/BAD console /' || true
}

for page in report.html report.zh.html; do
  said=$(look "$page")
  case $said in BAD*|*$'\n'BAD*) fail "$page: $said" ;; esac
  browser --no-pdf-header-footer --print-to-pdf="$out/$page.pdf" "file://$out/$page" >/dev/null 2>&1 || fail "$page: no PDF"
  pdftotext -layout "$out/$page.pdf" "$work/$page.txt"
  for word in 'N\*' wake_late_p99_ms; do
    grep -q "$word" "$work/$page.txt" || fail "$page: $word is not on paper"
  done
  printf '%s: %s; PDF %s pages\n' "$page" "$said" "$(pdfinfo "$out/$page.pdf" | awk '/^Pages/ { print $2 }')"
  shape=${said#*; }
  [ "${other:-$shape}" = "$shape" ] || fail "the languages differ: $other; $shape"
  other=$shape
done

# Both N*, every case of the campaign, the books, the lists at the end.
if [ $# -eq 0 ]; then
  for id in answer campaign ladder curves diagnosis distributions timelines drain tc01 tc02 tc03b tc04 tc05 tc06 tc07 tc08 \
      risks environment definitions; do
    grep -q "<section id=\"$id\"" "$out/report.html" || fail "the report has no section $id"
  done
  for plot in curve-ttft curve-rtf curve-wer curve-vram curve-kv cumulative-ttft drain soak-memory-0 fault-1; do
    [ -s "$out/plots/$plot.svg" ] || fail "there is no plot $plot.svg"
  done
fi

# A check that cannot fail shows nothing: each thing is broken on purpose.
broken() { # what, page, what the check should say, sed script
  sed "$4" "$out/$2" >"$out/broken.html"
  cmp -s "$out/$2" "$out/broken.html" && fail "$1: nothing was broken"
  said=$(look broken.html)
  grep -q "BAD .*$3" <<<"$said" || fail "$1 went unnoticed: $said"
}
broken "a wide page" report.html "scrolls to" 's|<main>|<main><p style="width:500px">wide</p>|'
broken "a blank plot" report.html "a blank plot" 's|<path class="data" d="[^"]*"|<path class="data" d="M9 9"|g;s|<circle [^>]*>||g;s|<path class="mark" [^>]*>||g;s|<rect class="data"[^>]*>|<rect>|g'
broken "a picture from elsewhere" report.html "console" 's|<main>|<main><img src="http://127.0.0.1:9/x.png" alt="">|'
broken "a script" report.html "console" 's|<main>|<main><script>1</script>|'
broken "a table cut on paper" report.html "cut on paper" 's|<main>|<main><div class="scroll"><table style="min-width:1200px"><tr><td>wide</td></tr></table></div>|'
broken "rows torn between pages" report.html "may be torn" 's|break-inside:avoid|break-inside:auto|g'
broken "English in the Chinese page" report.zh.html "English" 's|<main>|<main><p>nothing to complain of at all</p>|'
echo "each of seven breaks was noticed"
if [ -n "${KEEP-}" ]; then mkdir -p "$KEEP" && rm "$out/broken.html" && cp -r "$out/." "$KEEP/"; fi
