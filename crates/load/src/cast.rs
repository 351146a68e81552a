//! Who plays what.

use std::{sync::Arc, time::Duration};

use crate::deck::{Deck, DeckCall};

/// What one stream plays: calls of a deck, over and over.
#[derive(Debug, Clone)]
pub struct Part {
    deck: Arc<Deck>,
    order: Option<Arc<[usize]>>,
    first: usize,
    tape: Option<Arc<str>>,
}

impl Part {
    /// The whole deck in its own order, beginning at call `first` mod C.
    #[must_use]
    pub const fn new(deck: Arc<Deck>, first: usize) -> Self {
        Self { deck, order: None, first, tape: None }
    }

    /// The calls of the deck with these indices in this order, instead of all of them. Indices the deck does
    /// not have end the stream when it comes to them.
    #[must_use]
    pub fn in_order(mut self, order: impl Into<Arc<[usize]>>) -> Self {
        self.order = Some(order.into());
        self
    }

    /// Names the tape in the traces: needed where streams play different ones.
    #[must_use]
    pub fn of_tape(mut self, tape: impl Into<Arc<str>>) -> Self {
        self.tape = Some(tape.into());
        self
    }

    pub(crate) const fn deck(&self) -> &Arc<Deck> {
        &self.deck
    }

    pub(crate) fn tape(&self) -> Option<&str> {
        self.tape.as_deref()
    }

    /// Calls until it begins again.
    pub(crate) fn len(&self) -> usize {
        self.order.as_ref().map_or(self.deck.calls().len(), |order| order.len())
    }

    /// Audio until it begins again.
    fn audio(&self) -> Duration {
        let calls = self.deck.calls();
        match &self.order {
            None => self.deck.audio(),
            Some(order) => order.iter().filter_map(|&i| calls.get(i)).map(DeckCall::audio).sum(),
        }
    }

    /// The stream's `seq`-th call.
    pub(crate) fn call(&self, seq: u32) -> Option<&DeckCall> {
        let at = self.first.checked_add(usize::try_from(seq).ok()?)?.checked_rem(self.len())?;
        let index = match &self.order {
            Some(order) => *order.get(at)?,
            None => at,
        };
        self.deck.calls().get(index)
    }
}

/// Which part each stream plays.
#[derive(Debug, Clone)]
pub enum Cast {
    /// Every stream plays the whole deck; stream k begins at call k mod C.
    All(Arc<Deck>),
    /// Stream k plays part k mod the number of parts.
    Each(Vec<Part>),
}

impl From<Arc<Deck>> for Cast {
    fn from(deck: Arc<Deck>) -> Self {
        Self::All(deck)
    }
}

impl Cast {
    /// What stream `k` plays; nothing where there is no part at all.
    pub(crate) fn part(&self, k: u32) -> Option<Part> {
        let k = usize::try_from(k).ok()?;
        match self {
            Self::All(deck) => Some(Part::new(Arc::clone(deck), k)),
            Self::Each(parts) => parts.get(k.checked_rem(parts.len())?).cloned(),
        }
    }

    /// Calls that count: `loops` times what each of the streams plays.
    #[must_use]
    pub fn counted_calls(&self, streams: u32, loops: u32) -> u64 {
        let calls = (0..streams).filter_map(|k| self.part(k)).map(|part| part.len() as u64);
        calls.sum::<u64>().saturating_mul(loops.into())
    }

    fn decks(&self) -> Vec<&Arc<Deck>> {
        match self {
            Self::All(deck) => vec![deck],
            Self::Each(parts) => parts.iter().map(|p| &p.deck).collect(),
        }
    }

    /// Audio of the longest call that anybody may play.
    #[must_use]
    pub fn longest_call(&self) -> Duration {
        let calls = self.decks().into_iter().flat_map(|deck| deck.calls());
        calls.map(DeckCall::audio).max().unwrap_or_default()
    }

    /// Audio until the last of the streams has played its whole part once.
    #[must_use]
    pub fn longest_loop(&self, streams: u32) -> Duration {
        let parts = (0..streams).filter_map(|k| self.part(k));
        parts.map(|part| part.audio()).max().unwrap_or_default()
    }

    /// Largest message of all, bytes.
    pub(crate) fn largest_frame(&self) -> usize {
        self.decks().into_iter().map(|deck| deck.largest_frame()).max().unwrap_or(0)
    }
}
