//! A dialect of one's own: `P some words` while a caller speaks, `F some words.` when a sentence is sure, `.` at the end.
//!
//! In the house a dialect is one file in `src` and one line in `registry.rs`. Outside it, implement the two traits and
//! hand the dialect to `tapedeck_load::Target`: nothing else knows which protocol a connection carries.
//!
//! `cargo run -p tapedeck-protocol --example dialect`

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use bytes::Bytes;
use tapedeck_protocol::{
    Dialect, Frame, Incoming, Reading, Session, SessionStart, Signal, TextModel, Transcript,
};
use tapedeck_record::{Evidence, MessageKind, Texts};

fn main() {
    let mut session = Lines.session(&SessionStart::default());
    for message in ["P good", "P good mor", "F good morning.", "P how", "F how are you?", "."] {
        let reading = session.read(Incoming::Text(message));
        println!(
            "{message:<16} {:?}, {} characters, {} taken back",
            reading.kind, reading.chars, reading.revised
        );
    }
    println!("the caller said: {}", session.texts().finals);
}

/// Settings would be fields; it has none.
#[derive(Debug)]
pub(crate) struct Lines;

impl Dialect for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    // No message says which audio it covers, so no real-time factor can be known, and none will be printed.
    fn evidence(&self) -> Evidence {
        Evidence::None
    }

    // The samples travel as they are, so the frames are slices of the call and nothing is copied.
    fn prepare(&self, pcm: &Bytes, chunk_bytes: usize) -> Vec<Frame> {
        let starts = (0..pcm.len()).step_by(chunk_bytes.max(1));
        starts.map(|from| Frame::Binary(pcm.slice(from..pcm.len().min(from + chunk_bytes.max(1))))).collect()
    }

    fn session(&self, _: &SessionStart) -> Box<dyn Session> {
        Box::new(Talk { transcript: Transcript::new(TextModel::Segment), over: false, violations: 0 })
    }
}

/// One call's conversation.
struct Talk {
    transcript: Transcript,
    over: bool,
    violations: u32,
}

impl Session for Talk {
    fn ending(&mut self) -> Vec<Frame> {
        vec![Frame::Text("END".into())]
    }

    fn read(&mut self, message: Incoming<'_>) -> Reading {
        let Incoming::Text(line) = message else {
            return Reading::signal(Signal::Protocol("a binary message, where only lines are spoken".into()));
        };
        // Nothing may follow the end. That is no reason to fail, but it is counted.
        self.violations += u32::from(self.over);
        let (is_final, text) = match (line, line.split_once(' ')) {
            (".", _) => {
                self.over = true;
                return Reading::signal(Signal::Final);
            }
            (_, Some(("P", text))) => (false, text),
            (_, Some(("F", text))) => (true, text),
            _ => return Reading::signal(Signal::Protocol(format!("{line:?} is no line of this protocol"))),
        };
        let change = self.transcript.apply(None, text, is_final);
        Reading {
            kind: if is_final { MessageKind::Final } else { MessageKind::Partial },
            chars: change.chars,
            revised: change.revised,
            ..Reading::EMPTY
        }
    }

    fn texts(&self) -> Texts {
        self.transcript.texts()
    }

    fn tail_open(&self) -> bool {
        self.transcript.tail_open()
    }

    fn violations(&self) -> u32 {
        self.violations
    }
}
