//! Every tradition's error rate of a transcript: `cargo run -p tapedeck-wer --example rate -- REFERENCE HEARD`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use tapedeck_wer::{MetricVariant, measure};

fn main() {
    let mut given = std::env::args().skip(1);
    let reference = given.next().unwrap_or_else(|| "请打开 WiFi 设置，谢谢 Tom".to_owned());
    let heard = given.next().unwrap_or_else(|| "请打开wifi设置谢谢汤姆".to_owned());
    let measures = measure(&reference, &heard);
    println!("reference: {reference}\nheard:     {heard}");
    for variant in [MetricVariant::Mixed, MetricVariant::Characters] {
        let counts = measures.under(variant);
        let rate = counts.rate().map_or("unknown".to_owned(), |rate| format!("{:.1} %", 100.0 * rate));
        println!(
            "{rate:>8}  {}: {} replaced, {} missing, {} too many, of {}",
            variant.name(),
            counts.sub,
            counts.del,
            counts.ins,
            counts.ref_tokens
        );
    }
}
