//! Every command of the house in one place: for completions, for manual pages, and to hold them against each other.

use std::io::Write;
use std::path::Path;

use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;

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
    vec![
        crate::tapectl::Args::command(),
        crate::doctor::Cli::command(),
        crate::tc01::Cli::command(),
        crate::tc02::Cli::command(),
        crate::tc03::Cli::command(),
        crate::tc03b::Cli::command(),
        crate::tc04::Cli::command(),
        crate::tc05::Cli::command(),
        crate::tc06::Cli::command(),
        crate::tc07::Cli::command(),
        crate::tc08::Cli::command(),
        crate::campaign::Cli::command(),
        tapedeck_report_bins::Cli::command(),
        crate::tape_arrivals::Cli::command(),
        crate::tape_engine::Cli::command(),
        crate::tape_erlang::Cli::command(),
        crate::tape_gateway::Cli::command(),
        crate::tape_gpu_exporter::Cli::command(),
        crate::tape_sizing::Cli::command(),
        crate::tape_stream::Cli::command(),
        crate::tape_wer::Cli::command(),
    ]
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
    for mut command in all() {
        // Subcommands learn their whole names and the flags that they share.
        command.build();
        pages(folder, &command, &mut names)?;
    }
    Ok(names)
}

fn pages(folder: &Path, command: &Command, names: &mut Vec<String>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let file = format!("{name}.1");
    std::fs::write(folder.join(&file), text)?;
    names.push(file);
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        pages(folder, sub, names)?;
    }
    Ok(())
}
