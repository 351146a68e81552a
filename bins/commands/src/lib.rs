//! Every command of the house in one place: for completions, for manual pages, and to hold them against each other.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tapedeck_cli::Failure;
use tapedeck_record::ExitCode;

/// Shells that complete our flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ForShell {
    /// GNU bash
    Bash,
    /// The Z shell
    Zsh,
    /// The friendly interactive shell
    Fish,
}

impl From<ForShell> for Shell {
    fn from(shell: ForShell) -> Self {
        match shell {
            ForShell::Bash => Self::Bash,
            ForShell::Zsh => Self::Zsh,
            ForShell::Fish => Self::Fish,
        }
    }
}

/// Every command, as its users call it.
#[must_use]
pub fn all() -> Vec<Command> {
    let mut all = tapedeck_tape_bins::commands();
    all.extend(tapedeck::commands());
    all.push(tapedeck_report_bins::Cli::command());
    all.extend(tapedeck_servers::commands());
    all.extend(tapedeck_calculators::commands());
    all.push(Cli::command());
    all
}

/// Writes what shells and manual readers need to know of all commands of Tapedeck.
#[derive(Debug, Parser)]
#[command(name = "tape-commands", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to write
    #[command(subcommand)]
    pub command: What,
}

/// What to write.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Print completions of all commands for a shell
    Completions {
        /// Shell
        #[arg(value_enum)]
        shell: ForShell,
    },
    /// Write a manual page for each command and subcommand into a folder
    Man {
        /// Folder; it is made where it does not exist
        folder: PathBuf,
    },
}

const EXAMPLES: &str = "Examples:
  tape-commands completions bash > ~/.tapedeck.bash
  tape-commands man ~/.local/share/man/man1

Exit codes: 0 written; 2 wrong usage; 3 the system refused.";

/// Writes what was asked for; what there is to read goes to `out`.
///
/// # Errors
/// [`Failure`], with its exit code.
pub fn run(cli: &Cli, out: &mut impl Write) -> Result<ExitCode, Failure> {
    let refused = |what| move |source| Failure::System { what, source };
    match &cli.command {
        What::Completions { shell } => completions(*shell, out).map_err(refused("print completions"))?,
        What::Man { folder } => {
            let pages = manual(folder).map_err(refused("write manual pages"))?;
            let folder = folder.display();
            writeln!(out, "{} pages in {folder}; try: man {folder}/tc03.1", pages.len())
                .map_err(refused("print what was written"))?;
        }
    }
    Ok(ExitCode::Ok)
}

/// Writes one file of completions for all commands; a shell sources it once.
///
/// # Errors
/// What `out` refuses.
pub fn completions(shell: ForShell, out: &mut impl Write) -> std::io::Result<()> {
    let mut text = Vec::new();
    for mut command in all() {
        let name = command.get_name().to_string();
        let mut one = Vec::new();
        clap_complete::generate(Shell::from(shell), &mut command, &name, &mut one);
        // Zsh reads the names from the first line of a file; a sourced file defines each function and names it below.
        let one = String::from_utf8_lossy(&one).into_owned();
        text.extend_from_slice(one.strip_prefix(&format!("#compdef {name}\n")).unwrap_or(&one).as_bytes());
    }
    out.write_all(&text)?;
    out.flush()
}

/// Writes the manual pages of all commands and their subcommands into a folder, and gives their names.
///
/// # Errors
/// A folder that cannot be made or written to.
pub fn manual(folder: &Path) -> std::io::Result<Vec<String>> {
    std::fs::create_dir_all(folder)?;
    let mut names = Vec::new();
    for command in all() {
        let mut command = command.disable_help_subcommand(true);
        // Subcommands learn their whole names and the flags that they share.
        command.build();
        pages(folder, &command, &mut names)?;
    }
    Ok(names)
}

fn pages(folder: &Path, command: &Command, names: &mut Vec<String>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    let file = format!("{name}.1");
    std::fs::write(folder.join(&file), page(&name, command)?)?;
    names.push(file);
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        pages(folder, sub, names)?;
    }
    Ok(())
}

/// One page. Examples and exit codes, which a help text carries at its end, get the sections where a reader of manual
/// pages looks for them.
fn page(name: &str, command: &Command) -> std::io::Result<String> {
    let page = clap_mangen::Man::new(command.clone())
        .title(name)
        .date(jiff::Timestamp::now().strftime("%Y-%m-%d").to_string())
        .source(format!("Tapedeck {}", env!("CARGO_PKG_VERSION")))
        .manual("Tapedeck");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.has_subcommands() {
        page.render_subcommands_section(&mut text)?;
    }
    let mut text = spaced(&String::from_utf8_lossy(&text));
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, codes) = help.split_once("Exit codes:").unwrap_or((&help, ""));
    let (before, examples) = examples.split_once("Examples:").unwrap_or((examples, ""));
    for (heading, body) in [("NOTES", before), ("EXAMPLES", examples), ("\"EXIT STATUS\"", codes)] {
        if !body.trim().is_empty() {
            text.push_str(&format!(".SH {heading}\n"));
            let filled = body.lines().count() == 1;
            text.push_str(if filled { "" } else { ".nf\n" });
            body.trim_matches('\n')
                .lines()
                .for_each(|line| text.push_str(&format!("{}\n", plain(line.trim_start()))));
            text.push_str(if filled { "" } else { ".fi\n" });
        }
    }
    Ok(text)
}

/// A line of text as the formatter takes it literally.
fn plain(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    // A dot at the beginning would be a request.
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}

/// Without line breaks beside blank lines, where they do nothing but raise warnings.
fn spaced(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept: Vec<&str> = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let beside = |line: Option<&&str>| line.is_some_and(|l| l.is_empty() || l.starts_with(".sp"));
        let before = at.checked_sub(1).and_then(|at| lines.get(at));
        if *line == ".br" && (beside(before) || beside(lines.get(at + 1))) {
            continue;
        }
        kept.push(line);
    }
    kept.join("\n") + "\n"
}
