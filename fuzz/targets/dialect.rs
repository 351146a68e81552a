//! The readers of what servers say. The first line names the dialect (`pcm-json` where it names none), each further line
//! is a text message, or a binary one where it begins with `!`; a line `end` says that the audio is over.

use tapedeck_protocol::{Incoming, SessionStart, registry};

/// One input.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let name = lines.next().unwrap_or("");
    let named = registry::dialect(name, serde_json::Value::Null);
    let dialect = named.or_else(|_| registry::dialect("pcm-json", serde_json::Value::Null));
    let dialect = dialect.expect("every house speaks pcm-json");
    let mut session = dialect.session(&SessionStart::default());
    let _ = session.opening();
    let mut violations = 0;
    for line in lines {
        if line == "end" {
            let _ = session.ending();
            continue;
        }
        let reading = match line.strip_prefix('!') {
            Some(binary) => session.read(Incoming::Binary(binary.as_bytes())),
            None => session.read(Incoming::Text(line)),
        };
        // A message cannot carry more characters than it has, nor unsay a breach of the rules.
        assert!(reading.chars as usize <= line.len());
        assert!(session.violations() >= violations);
        violations = session.violations();
        let _ = session.replies();
    }
    let texts = session.texts();
    assert!(texts.finals.len() <= texts.finals_and_tail.len());
    let _ = session.instance();
}
