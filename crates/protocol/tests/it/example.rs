//! The dialect of the example keeps the contract.

#[cfg(test)]
#[expect(dead_code, reason = "an example's main is not called by a test")]
#[path = "../../examples/dialect.rs"]
mod dialect;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tapedeck_protocol::{Dialect, Incoming, SessionStart, Signal};

    use super::dialect::Lines;

    #[test]
    fn sentences_are_kept_and_the_end_is_the_end() {
        let mut session = Lines.session(&SessionStart::default());
        for message in ["P good mor", "F good morning.", "P how"] {
            assert_eq!(session.read(Incoming::Text(message)).signal, Signal::None);
        }
        assert!(session.tail_open());
        session.read(Incoming::Text("F how are you?"));
        assert_eq!(session.read(Incoming::Text(".")).signal, Signal::Final);
        let said = session.texts().finals;
        assert!(said.contains("good morning.") && said.contains("how are you?"), "{said}");
        assert_eq!((session.tail_open(), session.violations()), (false, 0));
        session.read(Incoming::Text("P still here"));
        assert_eq!(session.violations(), 1);
        assert!(matches!(session.read(Incoming::Binary(&[1])).signal, Signal::Protocol(_)));
    }

    #[test]
    fn every_byte_is_in_exactly_one_frame() {
        let pcm: Bytes = (0..7_001_u32).map(|i| (i % 251) as u8).collect();
        let frames = Lines.prepare(&pcm, 3_200);
        assert_eq!(frames.iter().map(|f| f.len()).collect::<Vec<_>>(), [3_200, 3_200, 601]);
    }
}
