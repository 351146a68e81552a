//! One call, written down by hand, and its figures: `cargo run -p tapedeck-score --example one_call`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::collections::BTreeMap;

use tapedeck_record::{
    CallFigure, CallMeta, Evidence, FinalKind, Message, MessageKind, Outcome, OutcomeDetail, SpeechMap, Trace,
};
use tapedeck_score::{Rules, Words, score};

const MS: u64 = 1_000_000;

fn main() {
    // Ten seconds of audio, somebody speaks from 0.4 s to 9.2 s. All instants are nanoseconds of one clock.
    let meta = CallMeta {
        index: 0,
        id: "one.wav".into(),
        duration_ms: 10_000,
        bucket_s: 10,
        channel: None,
        tags: BTreeMap::new(),
        speech: SpeechMap::new(vec![(400, 9_200).into()]),
    };
    // The server infers every 2 s and answers 300 ms later, saying how far it heard.
    let message = |window: u64| Message {
        at_ns: (window * 2_000 + 300) * MS,
        kind: if window == 5 { MessageKind::Final } else { MessageKind::Partial },
        bytes: 120,
        chars: 20,
        revised: 0,
        position_ms: u32::try_from(window * 2_000).ok(),
        window: None,
    };
    let trace = Trace {
        stream: 0,
        seq: 0,
        call: 0,
        tape: None,
        counted: true,
        c0_ns: 0,
        c1_ns: Some(12 * MS),
        chunk_ns: 100 * MS,
        audio_ns: 10_000 * MS,
        tail_silence_ns: 0,
        wake_late_us: vec![1_100; 100],
        blocked_us: vec![0; 100],
        end_ns: Some(10_013 * MS),
        messages: (1..=5).map(message).collect(),
        final_ns: Some(10_300 * MS),
        final_kind: Some(FinalKind::Marker),
        kept_from_ns: None,
        done_ns: 10_300 * MS,
        rtt_us: vec![800],
        instance: None,
        violations: 0,
        outcome: OutcomeDetail::plain(Outcome::Ok),
    };
    let record = score(&trace, &meta, &Rules::new(Evidence::Position, Some(2000)), &Words::default());
    for figure in CallFigure::ALL {
        let value = figure.get(&record).map_or("unknown".to_owned(), |value| format!("{value:.3}"));
        println!("{:>22} {value:>9}  {}", figure.spec().id, figure.spec().definition.en);
    }
}
