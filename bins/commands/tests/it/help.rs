//! Habits of every command: help with examples and exit codes, one name for one thing, completions, manual pages, colours.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on shall stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use assert_cmd::Command;
use tapedeck_commands::{self as commands, ForShell};

fn names() -> BTreeSet<String> {
    commands::all().iter().map(|c| c.get_name().to_string()).collect()
}

#[test]
fn every_program_is_among_the_commands() {
    let bins = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let packages = std::fs::read_dir(bins).unwrap().map(|e| e.unwrap().path().join("src/bin"));
    let programs = packages.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()));
    let programs: BTreeSet<String> =
        programs.map(|p| p.file_stem().unwrap().to_str().unwrap().to_string()).collect();
    assert_eq!(names(), programs);
}

#[test]
fn every_help_has_examples_and_exit_codes() {
    for mut command in commands::all() {
        let name = command.get_name().to_string();
        let help = command.render_long_help().to_string();
        assert!(help.contains("Examples:"), "{name} --help has no examples");
        assert!(help.contains("Exit codes:"), "{name} --help has no exit codes");
        assert!(help.contains(&format!("  {name} ")), "{name} --help has no example of itself");
        for arg in command.get_arguments() {
            let (id, help) = (arg.get_id(), arg.get_help().map(ToString::to_string).unwrap_or_default());
            assert!(!help.is_empty(), "{name}: {id} is not explained");
            assert!(!help.ends_with('.'), "{name}: {id}: one phrase, no full stop: {help}");
        }
    }
}

/// The help of a command and then of its subcommands, as printed 100 columns wide.
fn helps(command: &clap::Command, out: &mut String) {
    out.push_str(&format!("$ {} --help\n", command.get_bin_name().unwrap_or(command.get_name())));
    out.push_str(&command.clone().render_long_help().to_string());
    out.push('\n');
    command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
        .for_each(|sub| helps(sub, out));
}

/// After a change that is meant: `INSTA_UPDATE=always cargo test -p tapedeck-commands --test it help`, then read the difference.
#[test]
fn helps_are_as_they_were_read() {
    for command in commands::all() {
        let mut command = command.term_width(100);
        command.build();
        let mut text = String::new();
        helps(&command, &mut text);
        insta::assert_snapshot!(format!("of_{}", command.get_name()), text);
    }
}

/// Every flag of a command and its subcommands with what it takes.
fn flags(command: &clap::Command, all: &mut BTreeMap<String, BTreeMap<String, Vec<String>>>) {
    for arg in command.get_arguments() {
        let Some(long) = arg.get_long() else { continue };
        let takes = if arg.get_action().takes_values() {
            arg.get_value_names().map_or_else(String::new, |n| n.iter().map(ToString::to_string).collect())
        } else {
            "nothing".into()
        };
        let by = command.get_name().to_string();
        all.entry(long.to_string()).or_default().entry(takes).or_default().push(by);
    }
    command.get_subcommands().for_each(|sub| flags(sub, all));
}

#[test]
fn a_flag_takes_the_same_everywhere() {
    let mut all = BTreeMap::new();
    commands::all().iter().for_each(|command| flags(command, &mut all));
    assert!(all.len() > 60);
    // The same word for things that differ in what they take, for the reason given.
    let differ =
        [("out", "a folder or a file"), ("config", "always a file"), ("resume", "a folder may follow")];
    let wrong: Vec<_> = all
        .iter()
        .filter(|(flag, takes)| {
            let switch = takes.contains_key("nothing");
            switch && takes.len() > 1 && !differ.iter().any(|(name, _)| name == flag)
        })
        .collect();
    assert!(wrong.is_empty(), "a switch here and a value there: {wrong:#?}");
    for flag in ["json", "quiet", "rehearse", "force", "table"] {
        assert!(all[flag].keys().all(|takes| takes == "nothing"), "--{flag}: {:?}", all[flag]);
    }
    for flag in ["seed", "n-star", "require", "streams"] {
        let takes: Vec<_> = all[flag].keys().collect();
        assert!(
            takes.iter().all(|t| matches!(t.as_str(), "N" | "SEED" | "STREAMS" | "N,N,...")),
            "--{flag}: {takes:?}"
        );
    }
}

#[test]
fn every_case_and_the_report_take_limits_and_refuse_what_they_do_not_know() {
    let mut judging = 0;
    for command in commands::all() {
        let name = command.get_name().to_string();
        let case = name.starts_with("tc0") || name == "campaign";
        if !command.get_arguments().any(|arg| arg.get_long() == Some("fail")) {
            assert!(!case && name != "tape-report", "{name} takes no limits");
            continue;
        }
        judging += 1;
        // What a command wants besides.
        let besides: &[&str] = match name.as_str() {
            "tape-report" => &["results/a"],
            "tape-arrivals" => &["--rate", "100"],
            _ => &[],
        };
        let with = |limit: &'static str| {
            let words = [&[name.as_str(), "--fail", limit][..], besides].concat();
            command.clone().try_get_matches_from(words).map_err(|e| e.to_string())
        };
        with("final_s:p95<=2 by instance").unwrap();
        for (limit, near) in [
            ("finals:p95<=2", "did you mean `final_s`?"),
            ("final_s:pp95<=2", "did you mean `p95`?"),
            ("final_s:p95<=2 by instanc", "did you mean `instance`?"),
            ("final_s:p95<=2s", "write the bare number"),
        ] {
            let refused = with(limit).unwrap_err();
            assert!(refused.contains(near), "{name} --fail {limit}: {refused}");
        }
    }
    assert_eq!(judging, 12, "nine cases with tc03b, the campaign, arrivals, the report");
}

#[test]
fn shells_complete_every_command() {
    for shell in [ForShell::Bash, ForShell::Zsh, ForShell::Fish] {
        let mut text = Vec::new();
        commands::completions(shell, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for name in names() {
            let word = match shell {
                ForShell::Bash => format!(" {name}\n"),
                ForShell::Zsh => format!("compdef _{name} {name}"),
                ForShell::Fish => format!("complete -c {name} "),
            };
            assert!(text.contains(&word), "{shell:?} does not complete {name}");
        }
    }
}

/// Lets a shell read the completions and say something.
fn in_shell(shell: &str, script: &str) -> String {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("completions");
    let out = Command::cargo_bin("tape-commands").unwrap().args(["completions", shell]).output().unwrap();
    assert!(out.status.success());
    std::fs::write(&file, out.stdout).unwrap();
    let ran = std::process::Command::new(shell).arg("-c").arg(script).arg("x").arg(&file).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn bash_accepts_the_file_and_completes_a_flag() {
    let script = "set -e; bash -n \"$1\"; source \"$1\"; COMP_WORDS=(tc03 --unti); COMP_CWORD=1; \
                  _tc03 tc03 --unti tc03; echo \"${COMPREPLY[@]}\"; complete -p campaign tape-report tapectl";
    let said = in_shell("bash", script);
    assert!(said.starts_with("--until-sure\n"), "{said}");
    assert_eq!(said.lines().count(), 4, "{said}");
}

#[test]
#[ignore = "needs zsh; .ci/run has it"]
fn zsh_accepts_the_file_and_knows_the_commands() {
    let script = "autoload -U compinit && compinit -u -D && source \"$1\" && print -r -- ${_comps[tc03]} ${_comps[tape-report]}";
    assert_eq!(in_shell("zsh", script).trim(), "_tc03 _tape-report");
}

#[test]
#[ignore = "needs fish; .ci/run has it"]
fn fish_accepts_the_file_and_completes_flags_and_subcommands() {
    let script = "source $argv[2]; complete -C 'tc03 --unti'; complete -C 'tape-report comp'";
    let said = in_shell("fish", script);
    let words: Vec<&str> = said.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["--until-sure", "compare"], "{said}");
}

#[test]
#[ignore = "needs mandoc; .ci/run has it"]
fn manual_pages_raise_no_warning() {
    let tmp = tempfile::tempdir().unwrap();
    let pages = commands::manual(tmp.path()).unwrap();
    let mut checked = 0;
    for page in pages {
        let mut lint = std::process::Command::new("mandoc");
        let out = lint.args(["-T", "lint", "-W", "warning"]).arg(tmp.path().join(&page)).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success() && said.is_empty(), "{page}: {said}");
        checked += 1;
    }
    assert!(checked > 20);
}

#[test]
fn every_command_and_subcommand_has_a_manual_page() {
    let tmp = tempfile::tempdir().unwrap();
    let pages = commands::manual(tmp.path()).unwrap();
    for name in names() {
        assert!(pages.contains(&format!("{name}.1")), "{name} has no page");
    }
    for page in ["tapectl-freeze.1", "tape-report-compare.1", "tape-doctor-metrics.1"] {
        assert!(pages.iter().any(|p| p == page), "{page}");
    }
    let page = std::fs::read_to_string(tmp.path().join("tc03.1")).unwrap();
    assert!(page.contains(".TH tc03 1") && page.contains("\\-\\-fail"), "{page}");
    for section in [".SH EXAMPLES", ".SH \"EXIT STATUS\"", ".SH OPTIONS"] {
        assert!(page.contains(section), "{section}: {page}");
    }
}

/// Output of a command on a terminal of its own, by `script`.
fn on_terminal(line: &str, variables: &[(&str, &str)]) -> String {
    let mut script = std::process::Command::new("script");
    script
        .args(["-qec", line, "/dev/null"])
        .stdin(Stdio::null())
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR");
    script.envs(variables.iter().copied());
    let out = script.output().expect("`script` of util-linux gives a terminal to the test");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn colours_are_for_terminals_and_no_color_turns_them_off() {
    let program = Command::cargo_bin("tc03").unwrap();
    let program = program.get_program().to_str().unwrap().to_string();
    let tmp = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap();
    let config = tmp.path().join("tenth.toml");
    let at = fixtures.display();
    let text = format!(
        "[server]\nwindow_ms = 2000\n[tape]\nmanifest = \"{at}/tapes/tape-a-tenth.json\"\npool = \"{at}/pool-tenth\"\n\
         [load]\nramp_s = 0.05\nwarm_up_s = 2.0\ncool_down_s = 0.0\n[slo]\nttft_basis = \"window\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let line = |out: &str| {
        format!(
            "{program} --rehearse --config {} --streams 3 --out {}",
            config.display(),
            tmp.path().join(out).display()
        )
    };
    // Colour is said by `ESC [ ... m`; what moves a bar ends otherwise.
    let coloured = |text: &str| {
        text.split("\u{1b}[")
            .skip(1)
            .any(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'))
    };
    let plain = on_terminal(&line("a"), &[("NO_COLOR", "1")]);
    assert!(plain.contains("N* >= 3") && !coloured(&plain), "{plain:?}");
    let colour = on_terminal(&line("b"), &[]);
    assert!(colour.contains("\u{1b}[32mpass"), "{colour:?}");
    let help = on_terminal(&format!("{program} --help"), &[("NO_COLOR", "1")]);
    assert!(help.contains("Examples:") && !coloured(&help), "{help:?}");
    let out = Command::cargo_bin("tc03").unwrap().arg("--help").output().unwrap();
    assert!(!out.stdout.contains(&0x1b), "help that is piped has no colours");
}
