//! Prints what every deployment in the catalogue carries, as a table in Markdown:
//! `cargo run -p tapedeck-engine-model --example truths`.
#![expect(clippy::print_stdout, reason = "printing is what this example is for")]

use tapedeck_engine_model::truth::{TruthError, TruthRules, catalogue, long_tape, short_tape};

fn main() -> Result<(), TruthError> {
    let rules = TruthRules::default();
    let tapes = [(short_tape(), rules.tenth()), (long_tape(), rules)];
    println!("| deployment | instances | short tape | stopped by | long tape | stopped by |");
    println!("|---|---|---|---|---|---|");
    for deployment in catalogue() {
        print!("| {} | {} |", deployment.name, deployment.instances);
        for (tape, rules) in &tapes {
            let truth = deployment.truth(tape, rules, 1)?;
            match truth.limited_by {
                Some(limit) => print!(" {} | {limit} |", truth.capacity),
                None => print!(" {} or more | |", truth.capacity),
            }
        }
        println!();
    }
    Ok(())
}
