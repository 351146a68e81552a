//! Colour, where somebody looks at a terminal and did not ask for none.

use std::io::IsTerminal;
use std::sync::LazyLock;

use tapedeck_slo::Verdict;

/// Whether standard output is shown in colour: it is a terminal that knows colours, and `NO_COLOR` is unset or empty.
fn colours() -> bool {
    static COLOURS: LazyLock<bool> = LazyLock::new(|| {
        let set = |name| std::env::var_os(name).filter(|value: &std::ffi::OsString| !value.is_empty());
        std::io::stdout().is_terminal()
            && set("NO_COLOR").is_none()
            && set("TERM").is_some_and(|t| t != "dumb")
    });
    *COLOURS
}

/// A verdict in its colour: green, red, or yellow for what proves nothing.
pub(super) fn verdict(verdict: Verdict, text: &str) -> String {
    if !colours() {
        return text.to_string();
    }
    let colour = match verdict {
        Verdict::Pass => 32,
        Verdict::Fail => 31,
        _ => 33,
    };
    format!("\u{1b}[{colour}m{text}\u{1b}[0m")
}
