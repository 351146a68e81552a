//! Prints what every deployment in the catalogue carries, as a table in Markdown:
//! `cargo run -p tapedeck-engine-model --example reference_capacities`.
#![expect(clippy::print_stdout, reason = "printing is what this example is for")]

use tapedeck_engine_model::reference_capacity::{
    ReferenceError, ReferenceRules, catalogue, long_tape, short_tape,
};

fn main() -> Result<(), ReferenceError> {
    let rules = ReferenceRules::default();
    let tapes = [(short_tape(), rules.tenth()), (long_tape(), rules)];
    println!("| deployment | instances | short tape | stopped by | long tape | stopped by |");
    println!("|---|---|---|---|---|---|");
    for deployment in catalogue() {
        print!("| {} | {} |", deployment.name, deployment.instances);
        for (tape, rules) in &tapes {
            let reference = deployment.reference_capacity(tape, rules, 1)?;
            match reference.limited_by {
                Some(limit) => print!(" {} | {limit} |", reference.capacity),
                None => print!(" {} or more | |", reference.capacity),
            }
        }
        println!();
    }
    Ok(())
}
